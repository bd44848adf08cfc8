"""The picker's scheduling core and its index, measured by themselves.

python -m tests.bench.picker core --out build/bench/picker.json
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from tests.bench.picker.index import IndexFigures, measure_index
from tests.bench.picker.pick import PickTiming, time_pick
from tests.bench.picker.results import merge


def document(pick: PickTiming, index: IndexFigures) -> dict[str, Any]:
    """The figures as they are in the file: the ones that have a limit by themselves, then all of them."""
    return {
        "pick_p50_ms": pick.pick_p50_ms,
        "pick_p99_ms": pick.pick_p99_ms,
        "pods": pick.pods,
        "prompt_tokens": pick.prompt_tokens,
        "index_bytes_per_entry": max(index.bytes_per_entry, index.resident_bytes_per_entry),
        "pick": asdict(pick),
        "index": asdict(index),
    }


def table(pick: PickTiming, index: IndexFigures) -> Table:
    """The figures for a terminal, with the lowest and highest of the rounds."""
    found = Table(
        title=f"{pick.prompt_tokens:,} tokens over {pick.pods:,} pods; index of {index.entries:,} entries",
        title_justify="left",
    )
    for heading in ("", "median", "rounds"):
        found.add_column(heading, justify="left" if not heading else "right")
    rows: tuple[tuple[str, float, tuple[float, float], str], ...] = (
        ("pick, p50", pick.pick_p50_ms, pick.pick_p50_ms_spread, ".3f"),
        ("pick, p99", pick.pick_p99_ms, pick.pick_p99_ms_spread, ".3f"),
        ("pick, p99 of processor time", pick.pick_cpu_p99_ms, pick.pick_cpu_p99_ms_spread, ".3f"),
        ("learn what was sent, p99", pick.sent_p99_ms, pick.sent_p99_ms_spread, ".3f"),
    )
    for label, value, (low, high), form in rows:
        found.add_row(f"{label}, ms", f"{value:{form}}", f"{low:{form}} to {high:{form}}")
    found.add_row("bytes an entry, counted", f"{index.bytes_per_entry:.1f}")
    found.add_row("bytes an entry, resident", f"{index.resident_bytes_per_entry:.1f}")
    low, high = index.inserts_per_s_spread
    found.add_row("inserts a second", f"{index.inserts_per_s:,.0f}", f"{low:,.0f} to {high:,.0f}")
    found.add_row("inserts a second, evicting", f"{index.replacing_inserts_per_s:,.0f}")
    low, high = index.matches_per_s_spread
    found.add_row(
        f"prompts a second, {index.pods} pods", f"{index.matches_per_s:,.0f}", f"{low:,.0f} to {high:,.0f}"
    )
    return found


@click.command()
@click.option("--out", type=click.Path(path_type=Path), default=Path("build/bench/picker.json"))
@click.option("--pods", default=1_000, help="Candidates of a pick.")
@click.option("--prompt-tokens", default=30_000, help="Tokens of each prompt.")
@click.option("--entries", default=10_000_000, help="Entries of the index whose memory is measured.")
@click.option("--rounds", default=5, help="How often each is measured.")
def main(out: Path, pods: int, prompt_tokens: int, entries: int, rounds: int) -> None:
    """Measure a pick in the scheduling core, hashing included, and what the index takes."""
    pick = time_pick(pods, prompt_tokens, rounds=rounds)
    index = measure_index(entries, rounds=rounds)
    merge(out, document(pick, index))
    console = Console()
    console.print(table(pick, index))
    console.print(f"written to {out}")
