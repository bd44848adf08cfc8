"""PrometheusRule: what someone should be told of."""

from collections.abc import Callable
from typing import Any, Final

from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.objects.monitoring.alerts.alert import Alert, rules_object
from kvtier_operator.planning.objects.monitoring.alerts.disk_corrupt import disk_corrupt
from kvtier_operator.planning.objects.monitoring.alerts.disk_degraded import disk_degraded
from kvtier_operator.planning.objects.monitoring.alerts.disk_does_not_pay import disk_does_not_pay
from kvtier_operator.planning.objects.monitoring.alerts.engines_missing import engines_missing
from kvtier_operator.planning.objects.monitoring.alerts.hit_rate_collapsed import hit_rate_collapsed
from kvtier_operator.planning.objects.monitoring.alerts.loads_slower_than_prefill import (
    loads_slower_than_prefill,
)
from kvtier_operator.planning.objects.monitoring.alerts.no_engine import no_engine
from kvtier_operator.planning.objects.monitoring.alerts.picker_down import picker_down
from kvtier_operator.planning.objects.monitoring.alerts.smaller_than_planned import smaller_than_planned
from kvtier_operator.planning.objects.monitoring.alerts.transfers_failing import transfers_failing
from kvtier_operator.planning.objects.monitoring.queries import Queries
from kvtier_operator.planning.plan import Plan

_ALERTS: Final[tuple[Callable[[Plan, Queries], Alert | None], ...]] = (
    no_engine,
    engines_missing,
    picker_down,
    hit_rate_collapsed,
    loads_slower_than_prefill,
    transfers_failing,
    smaller_than_planned,
    disk_degraded,
    disk_corrupt,
    disk_does_not_pay,
)
"""A new alert is its file and one line here."""


def prometheus_rule(plan: Plan) -> dict[str, Any] | None:
    """One group of alerts; each says what was seen and where to look (docs/operations/monitoring.md)."""
    if not plan.resource.spec.observability.prometheus_rule:
        return None
    names, queries = Names.of(plan), Queries.of(plan)
    labels = {"namespace": names.namespace, "kvcachetier": names.resource}
    about = f"KVCacheTier {names.namespace}/{names.resource}: "
    return rules_object(
        names.metadata(names.resource, Component.MONITORING),
        f"kvtier.{names.namespace}.{names.resource}",
        (alert.rule(labels, about) for each in _ALERTS if (alert := each(plan, queries))),
    )
