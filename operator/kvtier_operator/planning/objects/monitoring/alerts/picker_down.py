"""Fires when the endpoint picker does not answer."""

from kvtier_operator.planning.objects.monitoring.alerts.alert import Alert
from kvtier_operator.planning.objects.monitoring.queries import Queries
from kvtier_operator.planning.plan import Plan


def picker_down(plan: Plan, queries: Queries) -> Alert:
    """The endpoint picker does not answer."""
    mode = plan.resource.spec.router.failure_mode.value
    return Alert(
        "KVCacheTierPickerDown",
        f"absent(up{{{queries.picker}}} == 1)",
        minutes=5,
        severity="critical",
        summary="the endpoint picker does not answer",
        description=f"Requests are handled as failureMode {mode} says: FailOpen sends them to any engine, "
        "FailClose refuses them. See the resource's condition RouterReady.",
    )
