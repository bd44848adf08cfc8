"""A panel of a dashboard, and where it is."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

WINDOW: Final = "$__rate_interval"
"""Grafana's window of at least four scrapes. Source: Grafana's documentation, Prometheus data source."""
DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
"""What the dashboard's variable `datasource` is set to."""
_COLUMNS: Final = 2
_WIDTH: Final = 12
"""Half of Grafana's grid of 24."""
_HEIGHT: Final = 8


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


def placed(panels: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The panels with a number and a place each, two beside each other, in the order they are given."""
    return [{**each, **_place(index)} for index, each in enumerate(panels)]


def _place(index: int) -> dict[str, Any]:
    row, column = divmod(index, _COLUMNS)
    grid = {"h": _HEIGHT, "w": _WIDTH, "x": column * _WIDTH, "y": row * _HEIGHT}
    return {"id": index + 1, "gridPos": grid}
