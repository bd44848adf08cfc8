"""Fires when fewer engines answer than are wanted, for longer than a start may take."""

from kvtier_operator.planning.objects.monitoring.alerts.alert import Alert
from kvtier_operator.planning.objects.monitoring.queries import Queries
from kvtier_operator.planning.plan import Plan


def engines_missing(plan: Plan, queries: Queries) -> Alert | None:
    """Fewer engines answer than are wanted."""
    wanted = plan.resource.spec.least_replicas
    if not wanted:
        return None
    return Alert(
        "KVCacheTierEnginesMissing",
        f"count(up{{{queries.engine}}} == 1) < {wanted}",
        # an engine that waits for one that drains, and starts as slowly as it may, is not missing
        minutes=(plan.ending.grace_s + plan.budget.fetch_s + plan.budget.startup_s) // 60 + 10,
        severity="warning",
        summary=f"fewer engines than the {wanted} wanted",
        description="{{ $value }} engines answer"
        f" of the {wanted} wanted: see the resource's condition EnginesReady.",
    )
