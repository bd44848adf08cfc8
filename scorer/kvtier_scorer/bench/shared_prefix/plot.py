"""Runs side by side as a picture: how many of the answers had begun by when."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jinja2 import Environment, PackageLoader

from kvtier_common.benchmarks import ticks
from kvtier_scorer.bench.shared_prefix.figures import Figures

_WIDTH: Final = 900
_HEIGHT: Final = 420
_LEFT: Final = 60
_RIGHT: Final = 20
_TOP: Final = 24
_BOTTOM: Final = 56
_COLOURS: Final = ("#9a9a9a", "#d9822b", "#1f6feb", "#2da44e", "#8250df", "#cf222e")
_MOST_TICKS: Final = 8


@dataclass(frozen=True, slots=True)
class Curve:
    """One run's share of answers over time, as points of an SVG polyline."""

    name: str
    colour: str
    points: str


def plot(runs: Sequence[Figures]) -> str:
    """An SVG with one curve a run: share of answers (0 to 1) whose first token had come, over seconds."""
    drawn = [run for run in runs if run.requests]
    longest_s = max((max(run.ttft_s) for run in drawn), default=1.0)
    x_scale = (_WIDTH - _LEFT - _RIGHT) / longest_s
    y_scale = _HEIGHT - _TOP - _BOTTOM

    def point(seconds: float, share: float) -> str:
        return f"{_LEFT + seconds * x_scale:.1f},{_HEIGHT - _BOTTOM - share * y_scale:.1f}"

    curves = []
    for number, run in enumerate(drawn):
        times = sorted(run.ttft_s)
        steps = [point(0, 0)]
        for count, seconds in enumerate(times):
            steps += [point(seconds, count / len(times)), point(seconds, (count + 1) / len(times))]
        curves.append(Curve(run.name, _COLOURS[number % len(_COLOURS)], " ".join(steps)))
    environment = Environment(loader=PackageLoader(__package__, "."), autoescape=True)
    return environment.get_template("plot.svg.j2").render(
        width=_WIDTH,
        height=_HEIGHT,
        left=_LEFT,
        right=_WIDTH - _RIGHT,
        top=_TOP,
        bottom=_HEIGHT - _BOTTOM,
        curves=curves,
        x_ticks=[(_LEFT + seconds * x_scale, _label(seconds)) for seconds in ticks(longest_s, _MOST_TICKS)],
        y_ticks=[(_HEIGHT - _BOTTOM - share / 4 * y_scale, f"{share * 25} %") for share in range(5)],
    )


def write_plot(runs: Sequence[Figures], path: Path) -> None:
    """Write the picture of `runs` to `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(plot(runs), encoding="utf-8")


def _label(seconds: float) -> str:
    return f"{seconds:g} s" if seconds >= 1 or not seconds else f"{seconds * 1000:g} ms"
