"""ConfigMap with the Grafana dashboard of one resource."""

from typing import Any

from kvtier_operator.planning.base.names import Component, Names, content_hash
from kvtier_operator.planning.objects.monitoring.grafana.document import Dashboard, dashboard_object
from kvtier_operator.planning.objects.monitoring.panels import panels
from kvtier_operator.planning.plan import Plan


def dashboard(plan: Plan) -> dict[str, Any] | None:
    """The dashboard under a file name of its own."""
    if not plan.resource.spec.observability.dashboard:
        return None
    names = Names.of(plan)
    metadata = names.metadata(f"{names.resource}-dashboard", Component.MONITORING)
    shown = Dashboard(
        uid=content_hash("kvcachetier", names.namespace, names.resource),
        title=f"KVCacheTier {names.namespace}/{names.resource}",
        tags=("vllm", "prefix cache"),
        heading="dashboard-of-a-kvcachetier",
        panels=panels(plan),
    )
    # a namespace has no dot, so no two resources of a cluster have one file
    return dashboard_object(metadata, f"kvcachetier.{names.namespace}.{names.resource}.json", shown)
