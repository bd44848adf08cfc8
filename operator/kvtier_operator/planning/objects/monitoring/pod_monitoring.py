"""PodMonitorings of engines and picker, for Google Cloud's managed Prometheus."""

from typing import Any

from kvtier_operator.planning.objects.gateway.providers import gateway_provider
from kvtier_operator.planning.objects.monitoring.scrape import monitors
from kvtier_operator.planning.plan import Plan


def pod_monitorings(plan: Plan) -> tuple[dict[str, Any], ...]:
    """In place of ServiceMonitors, as llm-d-router's chart has it for GKE.

    Source: config/charts/routerlib/templates/_gke.yaml of llm-d-router v0.10.0; no token, for these pickers
    serve their metrics without one. The job is named after the object.
    """
    if not plan.resource.spec.observability.service_monitor or not gateway_provider(plan).managed_prometheus:
        return ()
    return monitors(plan, "monitoring.googleapis.com/v1", "PodMonitoring", "tls")
