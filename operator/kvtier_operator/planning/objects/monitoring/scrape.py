"""What Prometheus scrapes, whichever kind of object tells it."""

from typing import Any, Final

from kvtier_operator.planning.arguments.extra_args import SKIP_VERIFY, serves_tls
from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.plan import Plan

METRICS_PATH: Final = "/metrics"
INTERVAL: Final = "15s"
"""A cache's hit rate is looked at over minutes; upstream's charts scrape pickers every 10 s."""

PORTS: Final = {Component.ENGINE: "http", Component.PICKER: "http-metrics"}
"""Port names, the same in the Services and in the containers."""


def monitors(plan: Plan, api_version: str, kind: str, tls_field: str) -> tuple[dict[str, Any], ...]:
    """One object for the engines and one for the picker, named as their Services are.

    Args:
        plan: The plan.
        api_version: Of the kind.
        kind: What tells Prometheus where to scrape.
        tls_field: What this kind calls its settings of TLS.
    """
    names = Names.of(plan)
    return tuple(
        {
            "apiVersion": api_version,
            "kind": kind,
            "metadata": names.metadata(name, component),
            "spec": {
                "selector": {"matchLabels": names.selector(component)},
                "endpoints": [_endpoint(plan, component, tls_field)],
            },
        }
        for name, component in ((names.engine, Component.ENGINE), (names.picker, Component.PICKER))
    )


def _endpoint(plan: Plan, component: Component, tls_field: str) -> dict[str, Any]:
    where = {"port": PORTS[component], "path": METRICS_PATH, "interval": INTERVAL}
    if component is Component.ENGINE and serves_tls(plan.resource.spec.engine):
        return where | {"scheme": "https", tls_field: dict(SKIP_VERIFY)}
    return where
