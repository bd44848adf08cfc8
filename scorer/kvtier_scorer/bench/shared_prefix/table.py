"""Runs side by side, for a terminal."""

import statistics
from collections.abc import Callable, Sequence
from typing import Final

from rich.table import Table

from kvtier_common.benchmarks import p90
from kvtier_scorer.bench.shared_prefix.figures import Figures


def _seconds(value: float) -> str:
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.2f} s"


def _hit_rate(figures: Figures, name: str) -> str:
    return "" if figures.hit_rate is None else f"{getattr(figures.hit_rate, name):.1%}"


_ROWS: Final[tuple[tuple[str, Callable[[Figures], str]], ...]] = (
    ("mean TTFT", lambda run: _seconds(statistics.fmean(run.ttft_s))),
    ("P90 TTFT", lambda run: _seconds(p90(run.ttft_s))),
    ("mean E2E latency", lambda run: _seconds(statistics.fmean(run.e2e_s))),
    ("P90 E2E latency", lambda run: _seconds(p90(run.e2e_s))),
    ("throughput, all tokens", lambda run: f"{run.tokens_per_s:,.0f} tokens/s"),
    ("throughput, answers", lambda run: f"{run.output_tokens_per_s:,.1f} tokens/s"),
    ("found on the device", lambda run: _hit_rate(run, "device")),
    ("found in a tier", lambda run: _hit_rate(run, "tier")),
    ("share of each engine", lambda run: " ".join(f"{share:.0%}" for share in run.engine_share)),
    ("failed", lambda run: str(run.failed) if run.failed else ""),
)


def table(runs: Sequence[Figures]) -> Table:
    """One column a run, without the rows that no run has anything for."""
    shape = runs[-1].workload
    found = Table(
        title=f"{shape.groups} system prompts of {shape.system_tokens:,} tokens, "
        f"{shape.prompts_per_group} questions of {shape.question_tokens:,} each, "
        f"answers of {shape.output_tokens:,}, {shape.concurrency} under way",
        title_justify="left",
    )
    found.add_column("")
    for run in runs:
        found.add_column(run.name, justify="right")
    for label, cell in _ROWS:
        cells = [cell(run) if run.requests else "-" for run in runs]
        if any(cells):
            found.add_row(label, *cells)
    return found
