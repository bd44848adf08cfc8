"""ServiceMonitors of engines and picker."""

from typing import Any

from kvtier_operator.planning.objects.gateway.providers import gateway_provider
from kvtier_operator.planning.objects.monitoring.scrape import monitors
from kvtier_operator.planning.plan import Plan


def service_monitors(plan: Plan) -> tuple[dict[str, Any], ...]:
    """One a component; Prometheus names the job after the Service, so the objects carry the Services' names.

    Source: prometheus-operator, pkg/apis/monitoring/v1/servicemonitor_types.go.
    """
    if not plan.resource.spec.observability.service_monitor or gateway_provider(plan).managed_prometheus:
        return ()
    return monitors(plan, "monitoring.coreos.com/v1", "ServiceMonitor", "tlsConfig")
