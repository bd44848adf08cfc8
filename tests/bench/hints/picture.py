"""The picture of the figures: bars of the agents' hit rates, and the steady tenant's over time."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final

from tests.pictures.drawing.page import STYLE, SVG
from tests.pictures.drawing.panel import Box, Line, panel

_WIDTH: Final = 1000
_LEFT: Final = 130
_RIGHT: Final = 60
_HEAD: Final = 34
_BAR: Final = 26
_FOOT: Final = 10
_GAP: Final = 6
_LINES: Final = 260
SIDES: Final = (
    "LRU", "no hints", "true hints", "50 % off", "a third false", "all false", "half greedy", "optimum",
)  # fmt: skip
_HINTED: Final = frozenset(SIDES[2:-1])


def picture(
    agents: Mapping[str, Mapping[str, float]], lines: Mapping[str, Sequence[tuple[float, float]]]
) -> str:
    """The whole picture.

    Args:
        agents: Median, least and most of the hit rate of each side, and of what is asked.
        lines: Times and hit rates of the steady tenant, by side.
    """
    bars_height = _HEAD + _BAR * len(SIDES) + _FOOT
    height = 3 * _GAP + bars_height + _LINES
    length_s = max(at for points in lines.values() for at, _ in points)
    over_time = [Line(name, tuple(points)) for name, points in lines.items()]
    box = Box(_GAP, 2 * _GAP + bars_height, _WIDTH - 2 * _GAP, _LINES)
    title = "A tenant's hit rate while another floods from the fifth minute"
    parts = [
        f'<svg xmlns="{SVG}" viewBox="0 0 {_WIDTH} {height}" role="img" aria-labelledby="t">',
        '<title id="t">Hit rates with hints and with tenants\' parts</title>',
        f"<style>{STYLE}</style>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#f5f7fa"/>',
        *_bars(agents, Box(_GAP, _GAP, _WIDTH - 2 * _GAP, bars_height)),
        *panel(title, "percentunit", over_time, box, length_s),
    ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _bars(rates: Mapping[str, Mapping[str, float]], box: Box) -> Iterator[str]:
    """A bar a side, with the seeds' least and most, and a line at what is asked."""
    yield f'<rect class="panel" x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="4"/>'
    title = "60 agents, working set three times the tier: hit rate, median of seeds with least and most"
    yield f'<text class="title" x="{box.x + 12}" y="{box.y + 20}">{escape(title)}</text>'
    left, width = box.x + _LEFT, box.width - _LEFT - _RIGHT
    top = box.y + _HEAD
    for row, name in enumerate(SIDES):
        rate = rates[name]
        y = top + _BAR * row
        colour = "#15803d" if name in _HINTED else "#5c6778"
        least, most = left + width * rate["least"], left + width * rate["most"]
        long = width * rate["median"]
        yield f'<text x="{left - 8:.0f}" y="{y + 13:.0f}" text-anchor="end">{escape(name)}</text>'
        yield f'<rect x="{left:.0f}" y="{y:.0f}" width="{long:.1f}" height="{_BAR - 9}" fill="{colour}"/>'
        middle = y + (_BAR - 9) / 2
        yield f'<path d="M{least:.1f} {middle:.1f}H{most:.1f}" stroke="#1b2330" stroke-width="1.5"/>'
        yield f'<text x="{most + 8:.0f}" y="{y + 13:.0f}">{rate["median"]:.1%}</text>'
    x = left + width * rates["asked"]["median"]
    end = top + _BAR * len(SIDES) - 4
    yield f'<path d="M{x:.1f} {top - 2:.0f}V{end:.0f}" stroke="#b4532a" stroke-dasharray="4 3"/>'
    yield f'<text class="soft" x="{x + 5:.0f}" y="{top - 4:.0f}">asked of true hints</text>'
