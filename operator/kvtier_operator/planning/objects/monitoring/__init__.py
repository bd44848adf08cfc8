"""Objects for Prometheus and Grafana; each is made only where the resource asks for it."""

from typing import Any

from kvtier_operator.planning.objects.monitoring.alerts import prometheus_rule
from kvtier_operator.planning.objects.monitoring.dashboard import dashboard
from kvtier_operator.planning.objects.monitoring.scrape import scrape_objects
from kvtier_operator.planning.plan import Plan


def monitoring_objects(plan: Plan) -> tuple[dict[str, Any], ...]:
    """What `spec.observability` asks for."""
    single = (prometheus_rule(plan), dashboard(plan))
    return (*scrape_objects(plan), *(built for built in single if built is not None))
