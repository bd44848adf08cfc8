"""ConfigMap with the Grafana dashboard of one resource."""

import json
from typing import Any, Final

from kvtier_operator.planning.objects.monitoring.panels import panels
from kvtier_operator.planning.objects.names import Component, Names, content_hash
from kvtier_operator.planning.plan import Plan

_SIDECAR_LABEL: Final = {"grafana_dashboard": "1"}
"""What Grafana's sidecar looks for by default. Source: prometheus-community/helm-charts, values.yaml of
kube-prometheus-stack, grafana.sidecar.dashboards."""
_SCHEMA_VERSION: Final = 39
"""Of Grafana 11; later ones convert it."""


def dashboard(plan: Plan) -> dict[str, Any] | None:
    """The dashboard under a file name of its own: the sidecar keeps those of all namespaces in one folder."""
    if not plan.resource.spec.observability.dashboard:
        return None
    names = Names.of(plan)
    metadata = names.metadata(f"{names.resource}-dashboard", Component.MONITORING)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata | {"labels": metadata["labels"] | _SIDECAR_LABEL},
        "data": {f"kvcachetier-{names.namespace}-{names.resource}.json": _dashboard(plan)},
    }


def _dashboard(plan: Plan) -> str:
    names = Names.of(plan)
    document = {
        "uid": content_hash("kvcachetier", names.namespace, names.resource),
        "title": f"KVCacheTier {names.namespace}/{names.resource}",
        "tags": ["kvtier", "vllm", "prefix cache"],
        "schemaVersion": _SCHEMA_VERSION,
        "editable": False,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [{"name": "datasource", "type": "datasource", "query": "prometheus"}]},
        "panels": panels(plan),
    }
    return json.dumps(document, indent=1, sort_keys=True) + "\n"
