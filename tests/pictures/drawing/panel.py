"""One panel as SVG: its title, its axes, a line for each series, a legend."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from tests.pictures.drawing.units import text, ticks, top

_COLOURS: Final = ("#15803d", "#2563a8", "#b4532a", "#8a5a9e", "#b08900", "#0e7490")
_LEFT: Final = 62
_RIGHT: Final = 14
_TOP: Final = 32
_BOTTOM: Final = 44
_PER_LETTER: Final = 6.6
"""Pixels of a letter of the legend, about."""


@dataclass(frozen=True, slots=True)
class Line:
    """One series.

    Attributes:
        name: As the legend has it.
        points: Seconds since the beginning, and values, which are finite.
    """

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Box:
    """Where a panel is, in pixels."""

    x: float
    y: float
    width: float
    height: float


def panel(title: str, unit: str, lines: Sequence[Line], box: Box, length_s: float) -> Iterator[str]:
    """Elements of SVG.

    Args:
        title: The panel's.
        unit: Grafana's name of the values' unit.
        lines: What Prometheus answered.
        box: Where to draw.
        length_s: What the time axis is long.
    """
    yield _frame(box)
    yield _text("title", box.x + 12, box.y + 20, title)
    plot = Box(box.x + _LEFT, box.y + _TOP, box.width - _LEFT - _RIGHT, box.height - _TOP - _BOTTOM)
    end = top(max((value for line in lines for _, value in line.points), default=0.0), unit)
    yield from _axes(unit, end, plot, length_s)
    if not any(line.points for line in lines):
        yield _text("soft", plot.x + plot.width / 2, plot.y + plot.height / 2, "No data", "middle")
    x = plot.x
    for index, line in enumerate(lines):
        colour = _COLOURS[index % len(_COLOURS)]
        yield from _line(line, plot, end, length_s, colour)
        y = box.y + box.height - 9
        yield f'<rect x="{x:.0f}" y="{y - 6:.0f}" width="10" height="3" fill="{colour}"/>'
        yield _text("soft", x + 15, y, line.name)
        x += 28 + _PER_LETTER * len(line.name)


def tile(title: str, unit: str, lines: Sequence[Line], box: Box) -> Iterator[str]:
    """The same of a panel that is one number: the last one that there was."""
    yield _frame(box)
    squeezed = f' textLength="{box.width - 24:.0f}"' if len(title) * _PER_LETTER > box.width - 24 else ""
    yield _text("soft", box.x + 12, box.y + 20, title, further=squeezed)
    last = next((line.points[-1][1] for line in lines if line.points), None)
    words = "No data" if last is None else text(last, unit)
    yield _text("number", box.x + box.width / 2, box.y + box.height / 2 + 20, words, "middle")


def _frame(box: Box) -> str:
    return f'<rect class="panel" x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="4"/>'


def _axes(unit: str, end: float, plot: Box, length_s: float) -> Iterator[str]:
    for tick in ticks(end):
        y = plot.y + plot.height * (1 - tick / end)
        yield f'<path class="grid" d="M{plot.x:.0f} {y:.1f}h{plot.width:.0f}"/>'
        yield _text("soft", plot.x - 8, y + 4, text(tick, unit), "end")
    for minute in range(int(length_s // 60) + 1):
        x = plot.x + plot.width * 60 * minute / length_s
        yield _text("soft", x, plot.y + plot.height + 15, f"{minute} min" if minute else "0", "middle")


def _line(line: Line, plot: Box, end: float, length_s: float, colour: str) -> Iterator[str]:
    if line.points:
        places = (
            f"{plot.x + plot.width * at / length_s:.1f} {plot.y + plot.height * (1 - value / end):.1f}"
            for at, value in line.points
        )
        yield f'<path d="M{"L".join(places)}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def _text(  # noqa: PLR0913 - a place, and how
    style: str, x: float, y: float, words: str, anchor: str = "start", *, further: str = ""
) -> str:
    place = f'x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"{further}'
    return f'<text class="{style}" {place}>{escape(words)}</text>'
