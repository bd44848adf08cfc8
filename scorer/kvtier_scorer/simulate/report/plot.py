"""A comparison as a picture: bars of the hit rate by tier, and the spread of the times to first token."""

from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Final

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from kvtier_common.benchmarks import ticks
from kvtier_common.tier import Tier
from kvtier_scorer.simulate.runs.compare import Comparison

_WIDTH: Final = 1000.0
_LEFT: Final = 150.0
_SPLIT: Final = 540.0
_GAP: Final = 50.0
_RIGHT: Final = 70.0
_TOP: Final = 56.0
_ROW: Final = 34.0
_BAR: Final = 18.0
_BOTTOM: Final = 52.0
_COLOURS: Final = dict(zip(Tier, cycle(("#1f6feb", "#2da44e", "#d9822b")), strict=False))
_MOST_TICKS: Final = 6


@dataclass(frozen=True, slots=True)
class Bar:
    """A part of a bar, in the picture's units."""

    x: float
    width: float
    colour: str
    label: str


@dataclass(frozen=True, slots=True)
class Row:
    """One policy: stacked bars of its hit rate, and a line from median to P90 with the mean on it."""

    name: str
    y: float
    bars: tuple[Bar, ...]
    hit_label: str
    hit_label_x: float
    median_x: float
    mean_x: float
    p90_x: float
    ttft_label: str


def plot(comparison: Comparison) -> str:
    """The picture (SVG)."""
    figures = comparison.figures
    longest_s = max((each.ttft_p90_s for each in figures.values()), default=0.0)
    longest_s = max(longest_s, *(each.ttft_mean_s for each in figures.values()), 1e-3)
    bars_width = _SPLIT - _LEFT
    times_left, times_right = _SPLIT + _GAP, _WIDTH - _RIGHT

    def time_x(seconds: float) -> float:
        return times_left + seconds / longest_s * (times_right - times_left)

    rows = []
    for number, (name, each) in enumerate(figures.items()):
        x = _LEFT
        bars = []
        for tier in Tier:
            width = each.tier_hit_rate[tier] * bars_width
            bars.append(Bar(x, width, _COLOURS[tier], f"{tier.label} {each.tier_hit_rate[tier]:.1%}"))
            x += width
        rows.append(
            Row(
                name=name,
                y=_TOP + (number + 0.5) * _ROW,
                bars=tuple(bars),
                hit_label=f"{each.hit_rate:.1%}",
                hit_label_x=x + 6,
                median_x=time_x(float(np.median(each.ttft_s))),
                mean_x=time_x(each.ttft_mean_s),
                p90_x=time_x(each.ttft_p90_s),
                ttft_label=f"mean {each.ttft_mean_s:.2f} s, P90 {each.ttft_p90_s:.2f} s",
            )
        )
    bottom = _TOP + len(rows) * _ROW
    environment = Environment(
        loader=PackageLoader("kvtier_scorer.simulate", "."), undefined=StrictUndefined, autoescape=True,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template("plot.svg.j2").render(
        title=f"{comparison.trace.name}: {len(comparison.trace):,} requests",
        width=_WIDTH,
        height=bottom + _BOTTOM,
        left=_LEFT,
        split=_SPLIT,
        times_left=times_left,
        times_right=times_right,
        top=_TOP,
        bottom=bottom,
        bar=_BAR,
        rows=rows,
        legend=[
            (tier.name, _COLOURS[tier])
            for tier in Tier
            if any(each.tier_hit_rate[tier] for each in figures.values())
        ],
        optimum_x=_LEFT + comparison.optimum_hit_rate * bars_width,
        optimum_label=f"optimum {comparison.optimum_hit_rate:.1%}",
        times=[(time_x(seconds), f"{seconds:g} s") for seconds in ticks(longest_s, _MOST_TICKS)],
    )


def write_plot(comparison: Comparison, path: Path) -> None:
    """Write the picture to `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(plot(comparison), encoding="utf-8")
