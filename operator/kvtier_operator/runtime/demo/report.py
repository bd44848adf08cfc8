"""The demo's report: a table for the terminal, JSON for programs, one HTML file for readers."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from rich.table import Table

from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.report.explain import explain
from kvtier_operator.planning.report.fields import report
from kvtier_operator.runtime.demo.acts import DemoMeasurements
from kvtier_operator.runtime.demo.plot import dot_plot, seconds
from kvtier_operator.runtime.demo.routing_act.result import RoutingResult, Way, title
from kvtier_operator.runtime.demo.routing_act.result import rows as routing_rows
from kvtier_operator.runtime.demo.tier_act.result import DemoResult, Kind

_MEANING: Final = {
    Kind.COLD: "every token computed",
    Kind.OFF: "evicted from the device, computed again",
    Kind.WARM: "loaded from CPU memory",
    Kind.DEVICE_HIT: "still in the device cache",
    Kind.OFF_DEVICE_HIT: "still in the device cache",
}


def write_report(
    folder: Path, measured: DemoMeasurements, plan: Plan, model_note: str, lengths_note: str = ""
) -> tuple[Path, Path]:
    """Write `report.json` and `report.html` and return their paths.

    Args:
        folder: Where to; made if it is not there.
        measured: The measurements.
        plan: The plan of the first act's engine with the tier.
        model_note: What the model is, in one sentence.
        lengths_note: Why prompts are shorter than by default, if they are.
    """
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        **measured.tier.to_json(),
        "routing": measured.routing.to_json(),
        "machine": asdict(measured.facts),
        "model": model_note,
        "shorter": lengths_note,
        "plan": report(plan),
    }
    json_path, html_path = folder / "report.json", folder / "report.html"
    json_path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    html_path.write_text(html(measured, plan, model_note, lengths_note), encoding="utf-8")
    return json_path, html_path


def html(measured: DemoMeasurements, plan: Plan, model_note: str, lengths_note: str = "") -> str:
    """The whole report as one self-contained HTML page."""
    environment = Environment(
        loader=PackageLoader("kvtier_operator.runtime.demo", "."),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["seconds"] = seconds
    result, routing = measured.tier, measured.routing
    rows = {str(kind): [sample.answer.ttft_s for sample in result.of(kind)] for kind in _MEANING}
    return environment.get_template("report.html.j2").render(
        result=result,
        kinds=[(kind, _MEANING[kind], result.ttft(kind)) for kind in _MEANING],
        warm=result.ttft(Kind.WARM),
        cold=result.ttft(Kind.COLD),
        hit=result.ttft(Kind.DEVICE_HIT),
        plot=dot_plot(rows),
        routing=routing,
        ways=[str(way) for way in Way],
        routing_rows=routing_rows(routing),
        routing_plot=dot_plot({str(way): routing.ways[way].ttft_s for way in Way}),
        plan=plan,
        sizing=explain(plan),
        facts=measured.facts,
        model_note=model_note,
        lengths_note=lengths_note,
    )


def table(result: DemoResult) -> Table:
    """The figures for the terminal."""
    made = Table(title=f"time to first token, {result.prompt_tokens:,} prompt tokens", title_justify="left")
    made.add_column("prefix", no_wrap=True)
    made.add_column("what happened")
    for column in ("median", "quartiles", "samples"):
        made.add_column(column, justify="right")
    for kind, meaning in _MEANING.items():
        times = result.ttft(kind)
        first, third = times.quartiles_s
        style = "bold green" if kind is Kind.WARM else ""
        made.add_row(
            kind,
            meaning,
            f"{times.median_s:.3f} s",
            f"{first:.3f}-{third:.3f} s",
            str(len(times.seconds)),
            style=style,
        )
    return made


def routing_table(routing: RoutingResult) -> Table:
    """The second act's figures for the terminal, one column a way."""
    made = Table(title=title(routing.load), title_justify="left")
    made.add_column("", no_wrap=True)
    for way in Way:
        made.add_column(way, justify="right", style="bold green" if way is Way.PICKER else "")
    for label, cells in routing_rows(routing):
        made.add_row(label, *cells)
    return made
