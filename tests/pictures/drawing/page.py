"""A dashboard as SVG, from its JSON model and what Prometheus answered to its queries.

It shows what the model says: panels, places, titles, units, legends. Grafana draws them in its own way.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from tests.pictures.drawing.panel import Box, Line, panel, tile

SVG: Final = "http://www.w3.org/2000/svg"
_WIDTH: Final = 1000
_COLUMNS: Final = 24
_ROW: Final = 25
_HEAD: Final = 44
_GAP: Final = 6
STYLE: Final = (
    "text{font:11px DejaVu Sans,Helvetica,Arial,sans-serif;fill:#1b2330}"
    ".title{font-size:13px;font-weight:bold}.number{font-size:30px;font-weight:bold;fill:#15803d}.head{font-size:17px;font-weight:bold}"
    ".soft{fill:#5c6778}.panel{fill:#fff;stroke:#dfe4ec}.grid{stroke:#e6eaf0}"
)


def page(model: Mapping[str, Any], lines: Mapping[int, Sequence[Line]], length_s: float) -> str:
    """The whole picture.

    Args:
        model: The dashboard's JSON model.
        lines: Series by the number of their panel.
        length_s: What the time axes are long.
    """
    places = {panel["id"]: panel["gridPos"] for panel in model["panels"]}
    height = _HEAD + _ROW * max(place["y"] + place["h"] for place in places.values()) + _GAP
    title = escape(model["title"])
    parts = [
        f'<svg xmlns="{SVG}" viewBox="0 0 {_WIDTH} {height}" role="img" aria-labelledby="t">',
        f'<title id="t">Dashboard: {title}</title>',
        f"<style>{STYLE}</style>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#f5f7fa"/>',
        f'<text class="head" x="{_GAP + 4}" y="28">{title}</text>',
    ]
    for each in model["panels"]:
        unit = each["fieldConfig"]["defaults"]["unit"]
        series, box = lines.get(each["id"], ()), _box(each["gridPos"])
        if each["type"] == "stat":
            parts += tile(each["title"], unit, series, box)
        else:
            parts += panel(each["title"], unit, series, box, length_s)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _box(place: Mapping[str, int]) -> Box:
    column = _WIDTH / _COLUMNS
    return Box(
        place["x"] * column + _GAP / 2,
        _HEAD + place["y"] * _ROW + _GAP / 2,
        place["w"] * column - _GAP,
        place["h"] * _ROW - _GAP,
    )
