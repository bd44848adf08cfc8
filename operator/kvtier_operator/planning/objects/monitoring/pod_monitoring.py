"""PodMonitorings of engines and picker, for Google Cloud's managed Prometheus."""

from typing import Any

from kvtier_operator.planning.objects.gateway_providers import gateway_provider
from kvtier_operator.planning.objects.monitoring.scrape import endpoint
from kvtier_operator.planning.objects.names import Component, Names
from kvtier_operator.planning.plan import Plan


def pod_monitorings(plan: Plan) -> tuple[dict[str, Any], ...]:
    """In place of ServiceMonitors, as llm-d-router's chart has it for GKE.

    Source: config/charts/routerlib/templates/_gke.yaml of llm-d-router v0.10.0; no token, for these pickers
    serve their metrics without one. The job is named after the object.
    """
    if not plan.resource.spec.observability.service_monitor or not gateway_provider(plan).managed_prometheus:
        return ()
    names = Names.of(plan)
    return (
        _pod_monitoring(names, names.engine, Component.ENGINE, endpoint(plan, Component.ENGINE, "tls")),
        _pod_monitoring(names, names.picker, Component.PICKER, endpoint(plan, Component.PICKER, "tls")),
    )


def _pod_monitoring(
    names: Names, name: str, component: Component, endpoint: dict[str, Any]
) -> dict[str, Any]:
    return {
        "apiVersion": "monitoring.googleapis.com/v1",
        "kind": "PodMonitoring",
        "metadata": names.metadata(name, component),
        "spec": {
            "selector": {"matchLabels": names.selector(component)},
            "endpoints": [endpoint],
        },
    }
