"""What Prometheus scrapes, whichever kind of object tells it."""

from typing import Any, Final

from kvtier_operator.planning.arguments.engine_tls import SKIP_VERIFY, serves_tls
from kvtier_operator.planning.objects.names import Component
from kvtier_operator.planning.plan import Plan

METRICS_PATH: Final = "/metrics"
INTERVAL: Final = "15s"
"""A cache's hit rate is looked at over minutes; upstream's charts scrape pickers every 10 s."""

PORTS: Final = {Component.ENGINE: "http", Component.PICKER: "http-metrics"}
"""Port names, the same in the Services and in the containers."""


def endpoint(plan: Plan, component: Component, tls_field: str) -> dict[str, Any]:
    """Where a component's metrics are.

    Args:
        plan: The plan.
        component: Engines or picker.
        tls_field: What the kind of object calls its settings of TLS.
    """
    where = {"port": PORTS[component], "path": METRICS_PATH, "interval": INTERVAL}
    if component is Component.ENGINE and serves_tls(plan.resource.spec.engine):
        return where | {"scheme": "https", tls_field: dict(SKIP_VERIFY)}
    return where
