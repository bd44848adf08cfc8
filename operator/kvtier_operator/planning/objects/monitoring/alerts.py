"""The alerts of one resource as a PrometheusRule."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kvtier_operator.planning.backends import traits_of
from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.base.promql import Alert, Series
from kvtier_operator.planning.objects.monitoring.labels import monitoring_metadata
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.tiers import told_tiers

_COLLAPSED_TO: Final = 0.5
"""Share of the day before that the hit rate must fall under: prompts of another kind move it by less."""
_LEAST_HIT_RATE: Final = 0.2
"""A hit rate of a day under this is a workload without common prefixes: nothing there can collapse."""
_LEAST_TOKENS_PER_S: Final = 100
"""Under this much traffic half an hour is too few prompts for a rate."""


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
        monitoring_metadata(plan, names.resource, Component.MONITORING),
        f"kvtier.{names.namespace}.{names.resource}",
        (alert.rule(labels, about) for alert in _alerts(plan, names)),
    )


def _alerts(plan: Plan, names: Names) -> Iterator[Alert]:
    """Those for which the resource's engines have metrics. A new alert is one more entry."""
    engines, spec = Series.of(names, names.engine), plan.resource.spec
    if wanted := spec.least_replicas:
        yield Alert(
            "KVCacheTierNoEngine",
            f"absent(up{{{engines.matchers}}} == 1)",
            minutes=5,
            severity="critical",
            summary="no engine answers",
            description="No engine can be scraped, so none serves: see the resource's condition "
            "EnginesReady.",
        )
        yield Alert(
            "KVCacheTierEnginesMissing",
            f"count(up{{{engines.matchers}}} == 1) < {wanted}",
            # an engine that waits for one that drains, and starts as slowly as it may, is not missing
            minutes=(plan.ending.grace_s + plan.budget.fetch_s + plan.budget.startup_s) // 60 + 10,
            severity="warning",
            summary=f"fewer engines than the {wanted} wanted",
            description="{{ $value }} engines answer"
            f" of the {wanted} wanted: see the resource's condition EnginesReady.",
        )
    mode = spec.router.failure_mode.value
    yield Alert(
        "KVCacheTierPickerDown",
        f"absent(up{{{Series.of(names, names.picker).matchers}}} == 1)",
        minutes=5,
        severity="critical",
        summary="the endpoint picker does not answer",
        description=f"Requests are handled as failureMode {mode} says: FailOpen sends them to any engine, "
        "FailClose refuses them. See the resource's condition RouterReady.",
    )
    now, day = engines.hit_share("30m"), engines.hit_share("1d")
    yield Alert(
        "KVCacheTierHitRateCollapsed",
        f"{now} < {_COLLAPSED_TO} * ({day})"
        f" and {day} > {_LEAST_HIT_RATE}"
        f" and {engines.queried_tokens('30m')} > {_LEAST_TOKENS_PER_S}",
        minutes=15,
        severity="warning",
        summary="the prefix cache's hit rate fell to less than half",
        description="{{ $value | humanizePercentage }} of the prompts' tokens came from a cache in the last "
        "half hour, less than half of the day's share: engines or picker restarted (both forget), "
        "or prompts changed.",
    )
    if traits_of(spec.backend).offloading:
        yield Alert(
            "KVCacheTierLoadsSlowerThanPrefill",
            f"{engines.loaded_tokens_per_load_second('30m')}"
            f" < {engines.computed_tokens_per_prefill_second('30m')}",
            minutes=30,
            severity="warning",
            summary="loading from the tier takes longer than computing anew",
            description="The tier brings back {{ $value | humanize }} tokens a second of loading, fewer than "
            "a prefill computes: it costs time instead of saving it.",
        )
    for traits, planned in told_tiers(spec, plan.tiers):
        yield from traits.alerts(engines, planned)
