"""Fires when no engine can be scraped."""

from kvtier_operator.planning.objects.monitoring.alerts.alert import Alert
from kvtier_operator.planning.objects.monitoring.queries import Queries
from kvtier_operator.planning.plan import Plan


def no_engine(plan: Plan, queries: Queries) -> Alert | None:
    """No engine can be scraped."""
    if not plan.resource.spec.least_replicas:
        return None
    return Alert(
        "KVCacheTierNoEngine",
        f"absent(up{{{queries.engine}}} == 1)",
        minutes=5,
        severity="critical",
        summary="no engine answers",
        description="No engine can be scraped, so none serves: see the resource's condition EnginesReady.",
    )
