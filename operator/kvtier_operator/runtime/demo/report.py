"""The demo's report: a table for the terminal, JSON for programs, one HTML file for readers."""

import json
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from rich.table import Table

from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.report.explain import explain
from kvtier_operator.planning.report.fields import report
from kvtier_operator.runtime.demo.routing import RoutingResult, Way, longer_tails, routing_rows, routing_title
from kvtier_operator.runtime.demo.sharing import SharingResult, Source
from kvtier_operator.runtime.demo.tier import Facts, Kind, TierResult
from kvtier_operator.runtime.measure import seconds

_LEFT: Final = 170.0
_RIGHT: Final = 30.0
_TOP: Final = 20.0
_ROW: Final = 54.0
_BOTTOM: Final = 46.0
_SPREAD: Final = 16.0
# Dots of one row are put beside each other by the golden ratio: evenly, and the same each time.
_GOLDEN: Final = (math.sqrt(5) - 1) / 2


class Dot(NamedTuple):
    """One sample, in the picture's units."""

    x: float
    y: float
    label: str


class Row(NamedTuple):
    """One kind of sample: its dots and its median."""

    label: str
    y: float
    median_x: float
    dots: tuple[Dot, ...]


class Tick(NamedTuple):
    """A mark on the time axis."""

    x: float
    label: str
    major: bool


class DotPlot(NamedTuple):
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
    """Lay out one row for each kind of sample."""
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
        rows.append(Row(label, middle, x(median), dots))
    bottom = _TOP + len(rows) * _ROW
    return DotPlot(
        width, bottom + _BOTTOM, _LEFT, width - _RIGHT, _TOP, bottom, tuple(rows), _ticks(low, high, x)
    )


def _ticks(low: float, high: float, x: Callable[[float], float]) -> tuple[Tick, ...]:
    """1, 2 and 5 of each decade; the powers of ten are major."""
    ticks = []
    for power in range(math.floor(low), math.ceil(high) + 1):
        for factor in (1, 2, 5):
            value = factor * 10.0**power
            if low <= math.log10(value) <= high:
                ticks.append(Tick(x(value), seconds(value), factor == 1))
    return tuple(ticks)


_MEANING: Final = {
    Kind.COLD: "every token computed",
    Kind.OFF: "evicted from the device, computed again",
    Kind.WARM: "loaded from CPU memory",
    Kind.DEVICE_HIT: "still in the device cache",
    Kind.OFF_DEVICE_HIT: "still in the device cache",
}


_WHERE: Final = {
    Source.COMPUTED: "every token computed",
    Source.SHARED: "read from the store",
    Source.LATER: "read from the store, which is all that was left",
}


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that the demo found."""

    tier: TierResult  # its first part
    routing: RoutingResult  # its second part
    sharing: SharingResult  # its third part
    facts: Facts
    plan: Plan  # the plan of the first part's engine with the tier
    model_note: str  # what the model is, in one sentence
    lengths_note: str = ""  # why prompts are shorter than by default, if they are

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Write `report.json` and `report.html` to a folder, which is made, and return their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        document = {
            **self.tier.to_json(),
            "routing": self.routing.to_json(),
            "sharing": self.sharing.to_json(),
            "machine": asdict(self.facts),
            "model": self.model_note,
            "shorter": self.lengths_note,
            "plan": report(self.plan),
        }
        json_path, html_path = folder / "report.json", folder / "report.html"
        json_path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        html_path.write_text(self.html(), encoding="utf-8")
        return json_path, html_path

    def html(self) -> str:
        """The whole report as one self-contained HTML page."""
        environment = Environment(
            loader=PackageLoader("kvtier_operator.runtime.demo", "."),
            undefined=StrictUndefined,
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters["seconds"] = seconds
        result, routing = self.tier, self.routing
        times = {str(kind): [sample.answer.ttft_s for sample in result.of(kind)] for kind in _MEANING}
        return environment.get_template("report.html.j2").render(
            result=result,
            kinds=[(kind, _MEANING[kind], result.ttft(kind)) for kind in _MEANING],
            warm=result.ttft(Kind.WARM),
            cold=result.ttft(Kind.COLD),
            hit=result.ttft(Kind.DEVICE_HIT),
            off=result.ttft(Kind.OFF),
            plot=dot_plot(times),
            routing=routing,
            ways=[str(way) for way in Way],
            routing_rows=routing_rows(routing),
            longer_tails=longer_tails(routing),
            routing_plot=dot_plot({str(way): routing.ways[way].ttft_s for way in Way}),
            sharing=self.sharing,
            sharing_rows=[(source, _WHERE[source], self.sharing.ttft(source)) for source in Source],
            sharing_plot=dot_plot(
                {str(source): [answer.ttft_s for answer in self.sharing.answers[source]] for source in Source}
            ),
            plan=self.plan,
            sizing=explain(self.plan),
            facts=self.facts,
            model_note=self.model_note,
            lengths_note=self.lengths_note,
        )


def table(result: TierResult) -> Table:
    """The figures for the terminal."""
    figures = Table(
        title=f"time to first token, {result.prompt_tokens:,} prompt tokens", title_justify="left"
    )
    figures.add_column("prefix", no_wrap=True)
    figures.add_column("what happened")
    for column in ("median", "quartiles", "samples"):
        figures.add_column(column, justify="right")
    for kind, meaning in _MEANING.items():
        times = result.ttft(kind)
        first, third = times.quartiles_s
        style = "bold green" if kind is Kind.WARM else ""
        figures.add_row(
            kind,
            meaning,
            f"{times.median_s:.3f} s",
            f"{first:.3f}-{third:.3f} s",
            str(len(times.seconds)),
            style=style,
        )
    return figures


def routing_table(routing: RoutingResult) -> Table:
    """The second part's figures for the terminal, one column a way."""
    figures = Table(title=routing_title(routing.load), title_justify="left")
    figures.add_column("", no_wrap=True)
    for way in Way:
        figures.add_column(way, justify="right", style="bold green" if way is Way.PICKER else "")
    for label, cells in routing_rows(routing):
        figures.add_row(label, *cells)
    return figures


def sharing_table(sharing: SharingResult) -> Table:
    """The third part's figures for the terminal."""
    figures = Table(
        title=f"one store behind all engines, {sharing.prompt_tokens:,} prompt tokens", title_justify="left"
    )
    figures.add_column("who is asked", no_wrap=True)
    figures.add_column("what happened")
    figures.add_column("TTFT (median)", justify="right")
    for source in Source:
        style = "" if source is Source.COMPUTED else "bold green"
        figures.add_row(source, _WHERE[source], f"{sharing.ttft(source).median_s:.3f} s", style=style)
    return figures
