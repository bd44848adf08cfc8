"""What a Grafana dashboard is made of, whoever is shown: panels, the document around them, the ConfigMap."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kvtier_common.version import PAGES_URL

DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
"""What the dashboard's variable `datasource` is set to."""
_GRID: Final = 24
"""Grafana's columns."""
_SIZES: Final = {"timeseries": (12, 8), "stat": (6, 4)}
"""Width and height in the grid, by type of panel."""

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


def panel(title: str, unit: str, expressions: Mapping[str, str]) -> dict[str, Any]:
    """Lines over time.

    Args:
        title: What is shown.
        unit: Grafana's name of the axis' unit, such as `bytes`.
        expressions: PromQL by legend, of which each is a line, or a line for each value of a label that the
            legend names as `{{label}}`.
    """
    return {
        "type": "timeseries",
        "title": title,
        "datasource": DATASOURCE,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": DATASOURCE, "expr": expr, "legendFormat": legend}
            for index, (legend, expr) in enumerate(expressions.items())
        ],
    }


def tile(title: str, unit: str, expression: str) -> dict[str, Any]:
    """One number, as it is now, over its line in the range that is shown."""
    model = panel(title, unit, {"now": expression})
    options = {"graphMode": "area", "reduceOptions": {"calcs": ["lastNotNull"]}}
    return model | {"type": "stat", "options": options}


def in_grid(panels: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The panels with a number and a place each, from left to right in the order they are given."""
    placed, x, y, row_height = [], 0, 0, 0
    for index, model in enumerate(panels):
        width, height = _SIZES[model["type"]]
        if x + width > _GRID or height != row_height:
            x, y, row_height = 0, y + row_height, height
        placed.append({**model, "id": index + 1, "gridPos": {"h": height, "w": width, "x": x, "y": y}})
        x += width
    return placed


@dataclass(frozen=True, slots=True)
class Variable:
    """What a reader chooses at the top of a dashboard."""

    name: str  # as `$name` in expressions
    label: str  # beside the choice
    query: str  # `label_values(SERIES, LABEL)`: the choice is among these

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
    """One dashboard."""

    uid: str  # where Grafana has it: /d/UID. At most 40 characters.
    title: str  # whose it is
    tags: tuple[str, ...]  # what it can be found by, beside `kvtier`
    heading: str  # of the page that says what is shown, as an anchor
    panels: Sequence[Mapping[str, Any]]  # with their places
    variables: tuple[Variable, ...] = ()  # what a reader chooses, beside the Prometheus

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
            "templating": {
                "list": [_DATASOURCE_VARIABLE, *(variable.to_json() for variable in self.variables)]
            },
            "links": self._links(),
            "panels": self.panels,
        }
        return json.dumps(document, indent=1, sort_keys=True) + "\n"

    def _links(self) -> list[dict[str, Any]]:
        others = {"type": "dashboards", "title": _TAG, "tags": [_TAG], "asDropdown": True}
        page = {"type": "link", "title": "What is shown", "url": f"{PAGE_URL}#{self.heading}", "icon": "doc"}
        # time and Prometheus stay what the reader chose
        return [others | {"keepTime": True, "includeVars": True}, page | {"targetBlank": True}]


def dashboard_object(metadata: Mapping[str, Any], file: str, dashboard: Dashboard) -> dict[str, Any]:
    """The ConfigMap.

    Args:
        metadata: Its own, without the label that the sidecar looks for.
        file: The sidecar keeps the dashboards of all namespaces in one folder: what it is to be called there.
        dashboard: What is shown.
    """
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**metadata, "labels": {**metadata["labels"], **SIDECAR_LABEL}},
        "data": {file: dashboard.to_text()},
    }
