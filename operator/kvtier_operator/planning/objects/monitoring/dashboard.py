"""The Grafana dashboard of one resource: how fast, where prompts come from, the tiers, the picker."""

from collections.abc import Iterator
from typing import Any

from kvtier_operator.planning.base.names import Component, Names, content_hash
from kvtier_operator.planning.base.promql import WINDOW
from kvtier_operator.planning.objects.monitoring.grafana import (
    Dashboard,
    dashboard_object,
    in_grid,
    panel,
)
from kvtier_operator.planning.objects.monitoring.queries import Queries
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.tiers import traits_of_tier


def dashboard(plan: Plan) -> dict[str, Any] | None:
    """Time series; what the backend or the picker has no metric for is left out."""
    if not plan.resource.spec.observability.dashboard:
        return None
    names, queries = Names.of(plan), Queries.of(plan)
    metadata = names.metadata(f"{names.resource}-dashboard", Component.MONITORING)
    content = Dashboard(
        uid=content_hash("kvcachetier", names.namespace, names.resource),
        title=f"KVCacheTier {names.namespace}/{names.resource}",
        tags=("vllm", "prefix cache"),
        heading="dashboard-of-a-kvcachetier",
        panels=in_grid([*_requests(queries), *_tiers(queries), *_picker(queries)]),
    )
    # a namespace has no dot, so no two resources of a cluster have one file
    return dashboard_object(metadata, f"kvcachetier.{names.namespace}.{names.resource}.json", content)


def _requests(queries: Queries) -> list[dict[str, Any]]:
    first_token = "vllm:time_to_first_token_seconds"  # noqa: S105 - not a password
    cached = queries.rate("vllm:prompt_tokens_cached_by_source_total", WINDOW, by="source")
    return [
        panel(
            "Time to first token",
            "s",
            {
                f"p{share:.0%}".rstrip("%"): queries.quantile(first_token, share, WINDOW)
                for share in (0.5, 0.95)
            },
        ),
        panel("Prompt tokens found in a cache", "percentunit", {"share": queries.hit_share(WINDOW)}),
        panel(
            "Prompt tokens a second, by where they came from",
            "short",
            {"all": queries.rate("vllm:prompt_tokens_total", WINDOW), "{{source}}": cached},
        ),
        panel(
            "Requests",
            "short",
            {
                "running": queries.gauge("vllm:num_requests_running"),
                "waiting": queries.gauge("vllm:num_requests_waiting"),
            },
        ),
        panel(
            "Device cache in use",
            "percentunit",
            {"{{pod}}": f"max by (pod) (vllm:kv_cache_usage_perc{{{queries.engine}}})"},
        ),
        panel("Engines that answer", "short", {"engines": f"count(up{{{queries.engine}}} == 1)"}),
    ]


def _tiers(queries: Queries) -> Iterator[dict[str, Any]]:
    if queries.moves_by_vllm:
        yield panel(
            "Bytes loaded and stored a second",
            "Bps",
            {
                "loaded": queries.rate("vllm:kv_offload_load_bytes_total", WINDOW),
                "stored": queries.rate("vllm:kv_offload_store_bytes_total", WINDOW),
            },
        )
        yield panel(
            "Does the tier pay: tokens a second of loading, of computing",
            "short",
            {
                "loading": queries.loaded_tokens_per_load_second(WINDOW),
                "computing": queries.computed_tokens_per_prefill_second(WINDOW),
            },
        )
    for tier in queries.tiers:
        yield from (panel(*shown) for shown in traits_of_tier(tier).panels(queries))


def _picker(queries: Queries) -> list[dict[str, Any]]:
    memory = f"max by (pod) (process_resident_memory_bytes{{{queries.picker}}})"
    panels = [panel("Picker: memory", "bytes", {"{{pod}}": memory})]
    if queries.picker_hit_ratio:
        of_picker = f"{{{queries.picker}}}[{WINDOW}]"
        total = f"sum(rate({queries.picker_hit_ratio}_sum{of_picker}))"
        count = f"sum(rate({queries.picker_hit_ratio}_count{of_picker}))"
        mean = f"{total} / {count}"
        panels.append(panel("Picker: share of a prompt it knows of", "percentunit", {"mean": mean}))
    return panels
