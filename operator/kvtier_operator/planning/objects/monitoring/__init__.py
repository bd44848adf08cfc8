"""Objects for Prometheus and Grafana, one a file; each is made only where the resource asks for it."""

from typing import Any

from kvtier_operator.planning.objects.monitoring.dashboard import dashboard
from kvtier_operator.planning.objects.monitoring.pod_monitoring import pod_monitorings
from kvtier_operator.planning.objects.monitoring.prometheus_rule import prometheus_rule
from kvtier_operator.planning.objects.monitoring.service_monitor import service_monitors
from kvtier_operator.planning.plan import Plan


def monitoring_objects(plan: Plan) -> tuple[dict[str, Any], ...]:
    """What `spec.observability` asks for."""
    single = (prometheus_rule(plan), dashboard(plan))
    return (
        *service_monitors(plan),
        *pod_monitorings(plan),
        *(built for built in single if built is not None),
    )
