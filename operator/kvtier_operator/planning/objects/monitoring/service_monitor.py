"""ServiceMonitors of engines and picker."""

from typing import Any

from kvtier_operator.planning.objects.gateway_providers import gateway_provider
from kvtier_operator.planning.objects.monitoring.scrape import endpoint
from kvtier_operator.planning.objects.names import Component, Names
from kvtier_operator.planning.plan import Plan


def service_monitors(plan: Plan) -> tuple[dict[str, Any], ...]:
    """One a component; Prometheus names the job after the Service, so the objects carry the Services' names.

    Source: prometheus-operator, pkg/apis/monitoring/v1/servicemonitor_types.go.
    """
    if not plan.resource.spec.observability.service_monitor or gateway_provider(plan).managed_prometheus:
        return ()
    names = Names.of(plan)
    return (
        _service_monitor(
            names, names.engine, Component.ENGINE, endpoint(plan, Component.ENGINE, "tlsConfig")
        ),
        _service_monitor(
            names, names.picker, Component.PICKER, endpoint(plan, Component.PICKER, "tlsConfig")
        ),
    )


def _service_monitor(
    names: Names, name: str, component: Component, endpoint: dict[str, Any]
) -> dict[str, Any]:
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": names.metadata(name, component),
        "spec": {
            "selector": {"matchLabels": names.selector(component)},
            "endpoints": [endpoint],
        },
    }
