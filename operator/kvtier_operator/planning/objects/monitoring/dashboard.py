"""The Grafana dashboard of one resource: how fast, where prompts come from, the tiers, the picker."""

from collections.abc import Iterator
from typing import Any, Final

from kvtier_common.metrics import hints, prefixes
from kvtier_operator.planning.backends import traits_of
from kvtier_operator.planning.base.names import Component, Names, content_hash
from kvtier_operator.planning.base.promql import WINDOW, Series
from kvtier_operator.planning.flavors import flavor_traits
from kvtier_operator.planning.objects.monitoring.grafana import (
    Dashboard,
    dashboard_object,
    in_grid,
    panel,
    tile,
)
from kvtier_operator.planning.objects.monitoring.labels import monitoring_metadata
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.tiers import told_tiers


def dashboard(plan: Plan) -> dict[str, Any] | None:
    """What is so now, and time series; what the backend or the picker has no metric for is left out."""
    if not plan.resource.spec.observability.dashboard:
        return None
    names = Names.of(plan)
    engines, picker = (Series.of(names, job) for job in (names.engine, names.picker))
    metadata = monitoring_metadata(plan, f"{names.resource}-dashboard", Component.MONITORING)
    content = Dashboard(
        uid=content_hash("kvcachetier", names.namespace, names.resource),
        title=f"KVCacheTier {names.namespace}/{names.resource}",
        tags=("vllm", "prefix cache"),
        heading="dashboard-of-a-kvcachetier",
        panels=in_grid(
            [
                *_now(plan, engines),
                *_requests(engines),
                *_tiers(plan, engines),
                *_kept(plan, engines),
                *_picker(plan, picker),
            ]
        ),
    )
    # a namespace has no dot, so no two resources of a cluster have one file
    return dashboard_object(metadata, f"kvcachetier.{names.namespace}.{names.resource}.json", content)


_FIRST_TOKEN: Final = "vllm:time_to_first_token_seconds"  # noqa: S105 - not a password


def _now(plan: Plan, engines: Series) -> Iterator[dict[str, Any]]:
    yield tile("Hit rate", "percentunit", engines.hit_share(WINDOW))
    if traits_of(plan.resource.spec.backend).offloading:
        yield tile("Prefill saved by the tiers, in this range", "s", engines.saved_s("$__range"))
    yield tile("Time to first token, p50", "s", engines.quantile(_FIRST_TOKEN, 0.5, WINDOW))
    yield tile("Engines that answer", "short", f"count(up{{{engines.matchers}}} == 1)")


def _requests(engines: Series) -> list[dict[str, Any]]:
    cached = engines.rate("vllm:prompt_tokens_cached_by_source_total", WINDOW, by="source")
    # sources that nothing ever came from are left out, and vLLM has no name for a remote tier
    by_source = f'label_replace({cached} > 0, "source", "remote", "source", "external_unspecified")'
    return [
        panel(
            "Time to first token",
            "s",
            {
                f"p{share:.0%}".rstrip("%"): engines.quantile(_FIRST_TOKEN, share, WINDOW)
                for share in (0.5, 0.95)
            },
        ),
        panel("Prompt tokens found in a cache", "percentunit", {"share": engines.hit_share(WINDOW)}),
        panel(
            "Prompt tokens a second, by where they came from",
            "short",
            {"all": engines.rate("vllm:prompt_tokens_total", WINDOW), "{{source}}": by_source},
        ),
        panel(
            "Requests",
            "short",
            engines.gauges({"running": "vllm:num_requests_running", "waiting": "vllm:num_requests_waiting"}),
        ),
        panel(
            "Device cache in use",
            "percentunit",
            {"{{pod}}": f"max by (pod) (vllm:kv_cache_usage_perc{{{engines.matchers}}})"},
        ),
    ]


def _tiers(plan: Plan, engines: Series) -> Iterator[dict[str, Any]]:
    if traits_of(plan.resource.spec.backend).offloading:
        yield panel(
            "Bytes loaded and stored a second",
            "Bps",
            engines.rates(
                {"loaded": "vllm:kv_offload_load_bytes", "stored": "vllm:kv_offload_store_bytes"},
            ),
        )
        yield panel(
            "Does the tier pay: tokens a second of loading, of computing",
            "short",
            {
                "loading": engines.loaded_tokens_per_load_second(WINDOW),
                "computing": engines.computed_tokens_per_prefill_second(WINDOW),
            },
        )
    for traits, _ in told_tiers(plan.resource.spec, plan.tiers):
        yield from (panel(*shown) for shown in traits.panels(engines))


def _kept(plan: Plan, engines: Series) -> Iterator[dict[str, Any]]:
    """What stays when room is needed, where the resource says something of it."""
    spec = plan.resource.spec
    retains = spec.tiers.cpu.retained or (spec.tiers.disk and spec.tiers.disk.retained)
    if spec.tenants:
        held = engines.gauge(hints.TENANT_HELD_BYTES, by="tenant, tier")
        loaded, asked = (
            engines.rate(f"{name}_total", WINDOW, by="tenant")
            for name in (hints.TENANT_HIT_TOKENS, hints.TENANT_ASKED_TOKENS)
        )
        yield panel("Tenants: bytes held of the tiers", "bytes", {"{{tenant}}, {{tier}}": held})
        yield panel("Tenants: tokens loaded a second", "short", {"{{tenant}}": loaded})
        yield panel(
            "Tenants: hit rate beyond the device", "percentunit", {"{{tenant}}": f"{loaded} / {asked}"}
        )
    if retains or spec.prefixes:
        retained = engines.gauge(hints.RETAINED_BYTES, by="tier")
        yield panel("Retained bytes", "bytes", {"{{tier}}": retained})
    if spec.prefixes:
        cached, tokens = (
            f"{name}{{{engines.matchers}}}" for name in (prefixes.CACHED_TOKENS, prefixes.TOKENS)
        )
        found = f"min by (prefix) ({cached} / {tokens})"
        yield panel("Prefixes: part found in a cache", "percentunit", {"{{prefix}}": found})


def _picker(plan: Plan, picker: Series) -> list[dict[str, Any]]:
    hit_ratio = flavor_traits(plan.resource.spec.router.flavor).hit_ratio
    memory = f"max by (pod) (process_resident_memory_bytes{{{picker.matchers}}})"
    panels = [panel("Picker: memory", "bytes", {"{{pod}}": memory})]
    if hit_ratio:
        of_picker = f"{{{picker.matchers}}}[{WINDOW}]"
        total = f"sum(rate({hit_ratio}_sum{of_picker}))"
        count = f"sum(rate({hit_ratio}_count{of_picker}))"
        mean = f"{total} / {count}"
        panels.append(panel("Picker: share of a prompt it knows of", "percentunit", {"mean": mean}))
    return panels
