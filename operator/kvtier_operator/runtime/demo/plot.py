"""Places samples on a logarithmic axis, for an SVG."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_LEFT: Final = 170.0
_RIGHT: Final = 30.0
_TOP: Final = 20.0
_ROW: Final = 54.0
_BOTTOM: Final = 46.0
_SPREAD: Final = 16.0
# Dots of one row are put beside each other by the golden ratio: evenly, and the same each time.
_GOLDEN: Final = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, slots=True)
class Dot:
    """One sample, in the picture's units."""

    x: float
    y: float
    label: str


@dataclass(frozen=True, slots=True)
class Row:
    """One kind of sample: its dots and its median."""

    label: str
    y: float
    median_x: float
    median_label: str
    dots: tuple[Dot, ...]


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on the time axis."""

    x: float
    label: str
    major: bool


@dataclass(frozen=True, slots=True)
class DotPlot:
    """A dot plot of times on a logarithmic axis, ready to be drawn."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    rows: tuple[Row, ...]
    ticks: tuple[Tick, ...]


def dot_plot(times_s: Mapping[str, Sequence[float]], *, width: float = 900.0) -> DotPlot:
    """Lay out one row for each kind of sample.

    Args:
        times_s: Seconds of each sample by kind, all above 0.
        width: Width of the picture.
    """
    every = [time for times in times_s.values() for time in times]
    low, high = math.log10(min(every)) - 0.12, math.log10(max(every)) + 0.12

    def x(seconds: float) -> float:
        return _LEFT + (math.log10(seconds) - low) / (high - low) * (width - _LEFT - _RIGHT)

    rows = []
    for index, (label, times) in enumerate(times_s.items()):
        middle = _TOP + (index + 0.5) * _ROW
        median = statistics.median(times)
        dots = tuple(
            Dot(x(time), middle + ((number * _GOLDEN) % 1 - 0.5) * 2 * _SPREAD, seconds(time))
            for number, time in enumerate(times)
        )
        rows.append(Row(label, middle, x(median), seconds(median), dots))
    bottom = _TOP + len(rows) * _ROW
    return DotPlot(
        width, bottom + _BOTTOM, _LEFT, width - _RIGHT, _TOP, bottom, tuple(rows), _ticks(low, high, x)
    )


def seconds(time_s: float) -> str:
    """A time for a reader: milliseconds below a second."""
    return f"{time_s * 1000:.0f} ms" if time_s < 1 else f"{time_s:.1f} s"


def _ticks(low: float, high: float, x: Callable[[float], float]) -> tuple[Tick, ...]:
    """1, 2 and 5 of each decade; the powers of ten are major."""
    ticks = []
    for power in range(math.floor(low), math.ceil(high) + 1):
        for factor in (1, 2, 5):
            value = factor * 10.0**power
            if low <= math.log10(value) <= high:
                ticks.append(Tick(x(value), seconds(value), factor == 1))
    return tuple(ticks)
