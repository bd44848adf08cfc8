"""What an alert is made of, and the alerts of one resource as a PrometheusRule."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kvtier_common.metrics import cpu_tier, disk_tier
from kvtier_common.version import PAGES_URL
from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.objects.monitoring.queries import Queries
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.tiers.observed_tiers import TOLERANCE

RUNBOOKS_URL: Final = f"{PAGES_URL}/operations/alerts.html"
"""docs/operations/alerts.md, with a heading for each alert."""

_COLLAPSED_TO: Final = 0.5
"""Share of the day before that the hit rate must fall under: prompts of another kind move it by less."""
_LEAST_HIT_RATE: Final = 0.2
"""A hit rate of a day under this is a workload without common prefixes: nothing there can collapse."""
_LEAST_TOKENS_PER_S: Final = 100
"""Under this much traffic half an hour is too few prompts for a rate."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert.

    Attributes:
        name: In CamelCase, with the kind in front.
        expr: PromQL; each series of its result is one alert.
        minutes: How long it must hold.
        severity: `warning` or `critical`.
        summary: What is wrong, after the resource's name where it is about one.
        description: What was seen, and where to look.
    """

    name: str
    expr: str
    minutes: int
    severity: str
    summary: str
    description: str

    def rule(self, labels: Mapping[str, str], about: str = "") -> dict[str, Any]:
        """As a rule of Prometheus; `runbook_url` leads to the heading of the alert's name.

        Args:
            labels: What the alert has beside its severity.
            about: Whose it is, in front of the summary.
        """
        return {
            "alert": self.name,
            "expr": self.expr,
            "for": f"{self.minutes}m",
            "labels": {"severity": self.severity, **labels},
            "annotations": {
                "summary": f"{about}{self.summary}",
                "description": self.description,
                "runbook_url": f"{RUNBOOKS_URL}#{self.name.lower()}",
            },
        }


def rules_object(
    metadata: Mapping[str, Any], group: str, rules: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    """A PrometheusRule with one group of rules.

    Source of the form: prometheus-operator, pkg/apis/monitoring/v1/prometheusrule_types.go.
    """
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": metadata,
        "spec": {"groups": [{"name": group, "rules": [*rules]}]},
    }


def prometheus_rule(plan: Plan) -> dict[str, Any] | None:
    """One group of alerts; each says what was seen and where to look (docs/operations/monitoring.md)."""
    if not plan.resource.spec.observability.prometheus_rule:
        return None
    names = Names.of(plan)
    labels = {"namespace": names.namespace, "kvcachetier": names.resource}
    about = f"KVCacheTier {names.namespace}/{names.resource}: "
    return rules_object(
        names.metadata(names.resource, Component.MONITORING),
        f"kvtier.{names.namespace}.{names.resource}",
        (alert.rule(labels, about) for alert in _alerts(plan, Queries.of(plan))),
    )


def _alerts(plan: Plan, queries: Queries) -> Iterator[Alert]:
    """Those for which the resource's engines have metrics. A new alert is one more entry."""
    if wanted := plan.resource.spec.least_replicas:
        yield Alert(
            "KVCacheTierNoEngine",
            f"absent(up{{{queries.engine}}} == 1)",
            minutes=5,
            severity="critical",
            summary="no engine answers",
            description="No engine can be scraped, so none serves: see the resource's condition "
            "EnginesReady.",
        )
        yield Alert(
            "KVCacheTierEnginesMissing",
            f"count(up{{{queries.engine}}} == 1) < {wanted}",
            # an engine that waits for one that drains, and starts as slowly as it may, is not missing
            minutes=(plan.ending.grace_s + plan.budget.fetch_s + plan.budget.startup_s) // 60 + 10,
            severity="warning",
            summary=f"fewer engines than the {wanted} wanted",
            description="{{ $value }} engines answer"
            f" of the {wanted} wanted: see the resource's condition EnginesReady.",
        )
    mode = plan.resource.spec.router.failure_mode.value
    yield Alert(
        "KVCacheTierPickerDown",
        f"absent(up{{{queries.picker}}} == 1)",
        minutes=5,
        severity="critical",
        summary="the endpoint picker does not answer",
        description=f"Requests are handled as failureMode {mode} says: FailOpen sends them to any engine, "
        "FailClose refuses them. See the resource's condition RouterReady.",
    )
    now, day = queries.hit_share("30m"), queries.hit_share("1d")
    yield Alert(
        "KVCacheTierHitRateCollapsed",
        f"{now} < {_COLLAPSED_TO} * ({day})"
        f" and {day} > {_LEAST_HIT_RATE}"
        f" and {queries.queried_tokens('30m')} > {_LEAST_TOKENS_PER_S}",
        minutes=15,
        severity="warning",
        summary="the prefix cache's hit rate fell to less than half",
        description="{{ $value | humanizePercentage }} of the prompts' tokens came from a cache in the last "
        "half hour, less than half of the day's share: engines or picker restarted (both forget), "
        "or prompts changed.",
    )
    if queries.moves_by_vllm:
        yield Alert(
            "KVCacheTierLoadsSlowerThanPrefill",
            f"{queries.loaded_tokens_per_load_second('30m')}"
            f" < {queries.computed_tokens_per_prefill_second('30m')}",
            minutes=30,
            severity="warning",
            summary="loading from the tier takes longer than computing anew",
            description="The tier brings back {{ $value | humanize }} tokens a second of loading, fewer than "
            "a prefill computes: it costs time instead of saving it.",
        )
    if queries.kvtier:
        yield from _cpu_tier_alerts(plan.tiers.cpu.capacity_bytes, queries)
    if queries.kvtier_disk:
        yield from _disk_alerts(queries)


def _cpu_tier_alerts(planned_bytes: int, queries: Queries) -> Iterator[Alert]:
    yield Alert(
        "KVCacheTierTransfersFailing",
        f"sum by (pod) (increase({cpu_tier.FAILED_CHUNKS}_total{{{queries.engine}}}[10m])) > 0",
        minutes=5,
        severity="warning",
        summary="loads or stores of the tier fail",
        description="{{ $value | humanize }} chunks were lost to failed transfers in ten minutes on "
        "{{ $labels.pod }}. Their tokens are computed anew; the engine's log says why.",
    )
    yield Alert(
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


def _disk_alerts(queries: Queries) -> Iterator[Alert]:
    yield Alert(
        "KVCacheTierDiskDegraded",
        f"max by (pod) ({disk_tier.DEGRADED}{{{queries.engine}}}) > 0",
        minutes=5,
        severity="warning",
        summary="an engine cannot use its disk tier",
        description="{{ $labels.pod }} serves from memory alone, as its disk is full, read-only, failing or "
        "too slow: the engine's log says which. It takes the disk up again by itself.",
    )
    yield Alert(
        "KVCacheTierDiskCorrupt",
        f"sum by (pod) (increase({disk_tier.CORRUPT_CHUNKS}_total{{{queries.engine}}}[1h])) > 0",
        # one damaged chunk is one too many, and it is gone from the disk already
        minutes=0,
        severity="warning",
        summary="a disk does not give back what was written to it",
        description="{{ $value | humanize }} chunks on the disk of {{ $labels.pod }} were not as written in "
        "the last hour. They were dropped and computed anew; look after the device.",
    )
    yield Alert(
        "KVCacheTierDiskDoesNotPay",
        f"max by (pod) ({disk_tier.PAYS}{{{queries.engine}}}) == 0",
        minutes=60,
        severity="warning",
        summary="a disk tier is slower than computing",
        description="{{ $labels.pod }} computes every prompt sooner than its disk reads it, so the disk is "
        "not used: the engine's log has both figures. A faster disk pays, or take tiers.disk away.",
    )
