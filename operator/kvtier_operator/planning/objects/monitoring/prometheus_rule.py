"""PrometheusRule: what someone should be told of."""

from typing import Any, Final

from kvtier_common.metrics import cpu_tier, disk_tier
from kvtier_operator.planning.corrected import TOLERANCE
from kvtier_operator.planning.objects.monitoring.queries import Queries
from kvtier_operator.planning.objects.names import Component, Names
from kvtier_operator.planning.plan import Plan

_COLLAPSED_TO: Final = 0.5
"""Share of the day before that the hit rate must fall under: prompts of another kind move it by less."""
_WORTH_TELLING: Final = 0.2
"""A hit rate of a day under this is a workload without common prefixes: nothing there can collapse."""
_ENOUGH_TOKENS_PER_S: Final = 100
"""Under this much traffic half an hour is too few prompts for a rate."""


def prometheus_rule(plan: Plan) -> dict[str, Any] | None:
    """One group of alerts; each says what was seen and where to look (docs/operations/monitoring.md).

    Source of the form: prometheus-operator, pkg/apis/monitoring/v1/prometheusrule_types.go.
    """
    if not plan.resource.spec.observability.prometheus_rule:
        return None
    names = Names.of(plan)
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": names.metadata(names.resource, Component.MONITORING),
        "spec": {"groups": [{"name": f"kvtier.{names.namespace}.{names.resource}", "rules": _alerts(plan)}]},
    }


def _alerts(plan: Plan) -> list[dict[str, Any]]:
    queries = Queries.of(plan)
    alerts = []
    if plan.resource.spec.replicas:
        alerts += [_no_engine(plan, queries), _engines_missing(plan, queries)]
    alerts += [_picker_down(plan, queries), _hit_rate_collapsed(plan, queries)]
    if queries.moves_by_vllm:
        alerts.append(_loads_slow(plan, queries))
    if queries.kvtier:
        alerts += [_transfers_failing(plan, queries), _tier_small(plan, queries)]
    if queries.kvtier_disk:
        alerts += [_disk_degraded(plan, queries), _disk_corrupt(plan, queries), _disk_idle(plan, queries)]
    return alerts


def _no_engine(plan: Plan, queries: Queries) -> dict[str, Any]:
    return _alert(
        plan,
        "KVCacheTierNoEngine",
        f"absent(up{{{queries.engine}}} == 1)",
        minutes=5,
        severity="critical",
        summary="no engine answers",
        description="No engine can be scraped, so none serves: see the resource's condition EnginesReady.",
    )


def _engines_missing(plan: Plan, queries: Queries) -> dict[str, Any]:
    wanted = plan.resource.spec.replicas
    return _alert(
        plan,
        "KVCacheTierEnginesMissing",
        f"count(up{{{queries.engine}}} == 1) < {wanted}",
        # an engine that waits for one that drains, and starts as slowly as it may, is not missing
        minutes=(plan.ending.grace_s + plan.budget.fetch_s + plan.budget.startup_s) // 60 + 10,
        severity="warning",
        summary=f"fewer engines than the {wanted} wanted",
        description="{{ $value }} engines answer"
        f" of the {wanted} wanted: see the resource's condition EnginesReady.",
    )


def _picker_down(plan: Plan, queries: Queries) -> dict[str, Any]:
    mode = plan.resource.spec.router.failure_mode.value
    return _alert(
        plan,
        "KVCacheTierPickerDown",
        f"absent(up{{{queries.picker}}} == 1)",
        minutes=5,
        severity="critical",
        summary="the endpoint picker does not answer",
        description=f"Requests are handled as failureMode {mode} says: FailOpen sends them to any engine, "
        "FailClose refuses them. See the resource's condition RouterReady.",
    )


def _hit_rate_collapsed(plan: Plan, queries: Queries) -> dict[str, Any]:
    now, day = queries.hit_share("30m"), queries.hit_share("1d")
    return _alert(
        plan,
        "KVCacheTierHitRateCollapsed",
        f"{now} < {_COLLAPSED_TO} * ({day})"
        f" and {day} > {_WORTH_TELLING}"
        f" and {queries.asked('30m')} > {_ENOUGH_TOKENS_PER_S}",
        minutes=15,
        severity="warning",
        summary="the prefix cache's hit rate fell to less than half",
        description="{{ $value | humanizePercentage }} of the prompts' tokens came from a cache in the last "
        "half hour, less than half of the day's share: engines or picker restarted (both forget), "
        "or prompts changed.",
    )


def _loads_slow(plan: Plan, queries: Queries) -> dict[str, Any]:
    loaded = queries.loaded_tokens_per_load_second("30m")
    computed = queries.computed_tokens_per_prefill_second("30m")
    return _alert(
        plan,
        "KVCacheTierLoadsSlowerThanPrefill",
        f"{loaded} < {computed}",
        minutes=30,
        severity="warning",
        summary="loading from the tier takes longer than computing anew",
        description="The tier brings back {{ $value | humanize }} tokens a second of loading, fewer than a "
        "prefill computes: it costs time instead of saving it.",
    )


def _transfers_failing(plan: Plan, queries: Queries) -> dict[str, Any]:
    return _alert(
        plan,
        "KVCacheTierTransfersFailing",
        f"sum by (pod) (increase({cpu_tier.FAILED_CHUNKS}_total{{{queries.engine}}}[10m])) > 0",
        minutes=5,
        severity="warning",
        summary="loads or stores of the tier fail",
        description="{{ $value | humanize }} chunks were lost to failed transfers in ten minutes on "
        "{{ $labels.pod }}. Their tokens are computed anew; the engine's log says why.",
    )


def _tier_small(plan: Plan, queries: Queries) -> dict[str, Any]:
    planned_bytes = plan.tiers.cpu.capacity_bytes
    return _alert(
        plan,
        "KVCacheTierSmallerThanPlanned",
        f"{queries.gauge(cpu_tier.CAPACITY_BYTES, by='pod')} < {1 - TOLERANCE} * {planned_bytes}"
        # an idle engine's figures stand still: it has said last that it grows
        f" and on (pod) {queries.gauge(cpu_tier.GROWING, by='pod')} == 0",
        minutes=10,
        severity="warning",
        summary="a CPU tier is smaller than planned",
        description="The CPU tier of {{ $labels.pod }} holds {{ $value | humanize1024 }}B, less than the "
        f"{planned_bytes:,} bytes planned: the picker sends it prefixes that it no longer has. Memory that "
        "was refused, or that a GPU's driver would not page-lock, is named in the engine's log.",
    )


def _disk_degraded(plan: Plan, queries: Queries) -> dict[str, Any]:
    return _alert(
        plan,
        "KVCacheTierDiskDegraded",
        f"max by (pod) ({disk_tier.DEGRADED}{{{queries.engine}}}) > 0",
        minutes=5,
        severity="warning",
        summary="an engine cannot use its disk tier",
        description="{{ $labels.pod }} serves from memory alone, as its disk is full, read-only, failing or "
        "too slow: the engine's log says which. It takes the disk up again by itself.",
    )


def _disk_corrupt(plan: Plan, queries: Queries) -> dict[str, Any]:
    return _alert(
        plan,
        "KVCacheTierDiskCorrupt",
        f"sum by (pod) (increase({disk_tier.CORRUPT_CHUNKS}_total{{{queries.engine}}}[1h])) > 0",
        # one damaged chunk is one too many, and it is gone from the disk already
        minutes=0,
        severity="warning",
        summary="a disk does not give back what was written to it",
        description="{{ $value | humanize }} chunks on the disk of {{ $labels.pod }} were not as written in "
        "the last hour. They were dropped and computed anew; look after the device.",
    )


def _disk_idle(plan: Plan, queries: Queries) -> dict[str, Any]:
    return _alert(
        plan,
        "KVCacheTierDiskDoesNotPay",
        f"max by (pod) ({disk_tier.PAYS}{{{queries.engine}}}) == 0",
        minutes=60,
        severity="warning",
        summary="a disk tier is slower than computing",
        description="{{ $labels.pod }} computes every prompt sooner than its disk reads it, so the disk is "
        "not used: the engine's log has both figures. A faster disk pays, or take tiers.disk away.",
    )


def _alert(  # noqa: PLR0913 - an alert's fields
    plan: Plan, name: str, expr: str, *, minutes: int, severity: str, summary: str, description: str
) -> dict[str, Any]:
    names = Names.of(plan)
    return {
        "alert": name,
        "expr": expr,
        "for": f"{minutes}m",
        "labels": {"severity": severity, "namespace": names.namespace, "kvcachetier": names.resource},
        "annotations": {
            "summary": f"KVCacheTier {names.namespace}/{names.resource}: {summary}",
            "description": description,
        },
    }
