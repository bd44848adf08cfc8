"""A dashboard as Grafana reads it, and the ConfigMap in which its sidecar finds it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kvtier_common.version import PAGES_URL
from kvtier_operator.planning.objects.monitoring.grafana.panel import DATASOURCE

SIDECAR_LABEL: Final = {"grafana_dashboard": "1"}
"""What Grafana's sidecar looks for by default. Source: prometheus-community/helm-charts, values.yaml of
kube-prometheus-stack, grafana.sidecar.dashboards."""
PAGE_URL: Final = f"{PAGES_URL}/operations/monitoring.html"
"""docs/operations/monitoring.md, with a heading for each dashboard."""
_SCHEMA_VERSION: Final = 39
"""Of Grafana 11; later ones convert it."""
_TAG: Final = "kvtier"
"""All dashboards of kvtier have it, and each leads to the others by it."""
_DATASOURCE_VARIABLE: Final = {
    "name": "datasource",
    "label": "Prometheus",
    "type": "datasource",
    "query": DATASOURCE["type"],
}
_ON_TIME_RANGE_CHANGE: Final = 2
_ALPHABETICAL: Final = 1


@dataclass(frozen=True, slots=True)
class Variable:
    """What a reader chooses at the top of a dashboard.

    Attributes:
        name: As `$name` in expressions.
        label: Beside the choice.
        query: `label_values(SERIES, LABEL)`: the choice is among these.
    """

    name: str
    label: str
    query: str

    def to_json(self) -> dict[str, Any]:
        """As Grafana has it. Source: Grafana's documentation, JSON model of a dashboard, templating."""
        return {
            "name": self.name,
            "label": self.label,
            "type": "query",
            "datasource": DATASOURCE,
            "query": self.query,
            "definition": self.query,
            "refresh": _ON_TIME_RANGE_CHANGE,
            "sort": _ALPHABETICAL,
        }


@dataclass(frozen=True, slots=True)
class Dashboard:
    """One dashboard.

    Attributes:
        uid: Where Grafana has it: /d/UID. At most 40 characters.
        title: Whose it is.
        tags: What it can be found by, beside `kvtier`.
        heading: Of the page that says what is shown, as an anchor.
        panels: With their places.
        variables: What a reader chooses, beside the Prometheus.
    """

    uid: str
    title: str
    tags: tuple[str, ...]
    heading: str
    panels: Sequence[Mapping[str, Any]]
    variables: tuple[Variable, ...] = ()

    def to_text(self) -> str:
        """The JSON model, the same bytes for the same dashboard."""
        document = {
            "uid": self.uid,
            "title": self.title,
            "tags": [_TAG, *self.tags],
            "schemaVersion": _SCHEMA_VERSION,
            "editable": False,
            "refresh": "30s",
            "time": {"from": "now-6h", "to": "now"},
            "templating": {"list": [_DATASOURCE_VARIABLE, *(each.to_json() for each in self.variables)]},
            "links": self._links(),
            "panels": self.panels,
        }
        return json.dumps(document, indent=1, sort_keys=True) + "\n"

    def _links(self) -> list[dict[str, Any]]:
        others = {"type": "dashboards", "title": _TAG, "tags": [_TAG], "asDropdown": True}
        page = {"type": "link", "title": "What is shown", "url": f"{PAGE_URL}#{self.heading}", "icon": "doc"}
        # time and Prometheus stay what the reader chose
        return [others | {"keepTime": True, "includeVars": True}, page | {"targetBlank": True}]


def dashboard_object(metadata: Mapping[str, Any], file: str, shown: Dashboard) -> dict[str, Any]:
    """The ConfigMap.

    Args:
        metadata: Its own, without the label that the sidecar looks for.
        file: The sidecar keeps the dashboards of all namespaces in one folder: what it is to be called there.
        shown: The dashboard.
    """
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**metadata, "labels": {**metadata["labels"], **SIDECAR_LABEL}},
        "data": {file: shown.to_text()},
    }
