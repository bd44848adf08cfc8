"""``kvtier bench connector``: the connector's figures, measured beside what they are compared with."""

import json
import os
import random
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

import click
from rich.console import Console
from rich.table import Table

from kvtier_connector.bench_engine import Answer, Ask, bench_engine
from kvtier_connector.bench_index import bench_index
from kvtier_connector.bench_model import write_bench_model
from kvtier_connector.config import GIB, ConnectorConfig
from kvtier_connector.errors import ConnectorError

_TIER: Final = ConnectorConfig(cpu_capacity_bytes=GIB)
_HITS_PER_PROMPT: Final = 3
_OVERHEAD_PROMPT_TOKENS: Final = (512, 4096)
"""The tier costs about the same for every engine step, which is a larger share of a short prompt."""
_OVERHEAD_OUTPUT_TOKENS: Final = 16
_RESAMPLES: Final = 10_000


def bench_ttft(model: Path, *, prompt_tokens: int, repeats: int, log: Path) -> dict[str, Any]:
    """Measure time to first token cold, from the device's cache and from the CPU tier, in one engine.

    Args:
        model: the model's folder.
        prompt_tokens: length of the prompts; each repeat has a new one.
        repeats: number of prompts.
        log: file for the engine's output.
    """
    found: dict[str, list[Answer]] = {"cold": [], "device_hit": [], "cpu_tier": []}
    equal = True
    with bench_engine(model, tier=_TIER, max_model_len=prompt_tokens + 64, log=log) as engine:
        engine.run(Ask(seed=-1, prompt_tokens=256))
        for seed in range(repeats):
            cold = engine.run(Ask(seed, prompt_tokens, forget=True))
            found["cold"].append(cold)
            for _ in range(_HITS_PER_PROMPT):
                hits = engine.run(Ask(seed, prompt_tokens)), engine.run(Ask(seed, prompt_tokens, forget=True))
                for name, answer in zip(("device_hit", "cpu_tier"), hits, strict=True):
                    found[name].append(answer)
                # Not with the cold answer: in bfloat16 a device hit itself may differ from that by rounding.
                equal &= hits[0].tokens == hits[1].tokens
    medians = {name: median(answer.seconds for answer in answers) for name, answers in found.items()}
    return {
        "prompt_tokens": prompt_tokens,
        "repeats": repeats,
        "cached_tokens": {name: min(answer.cached for answer in answers) for name, answers in found.items()},
        **{f"{name}_s": value for name, value in medians.items()},
        "spread_s": {
            name: [min(answer.seconds for answer in answers), max(answer.seconds for answer in answers)]
            for name, answers in found.items()
        },
        "over_device_hit": medians["cpu_tier"] / medians["device_hit"],
        "speedup": medians["cold"] / medians["cpu_tier"],
        "outputs_equal": equal,
    }


def bench_overhead(
    model: Path, *, rounds: int, pairs: int, log: Path, say: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Measure what the tier costs requests that never hit it: two engines alive at once take turns.

    Nothing is found in the tier, but everything is stored. Both engines compute on one core and leave the
    others to everything else, and each waits until the other is at rest. Two processes of the very same
    settings still differ by some percent for as long as they live, so every round starts new ones, and the
    interval is that over rounds.

    Args:
        model: the model's folder.
        rounds: how often both engines are started anew.
        pairs: number of prompts of each length in a round, in alternating order.
        log: file for the engines' output; the second gets a suffix.
        say: is told how far it is.
    """
    found: dict[int, list[list[_Pair]]] = {length: [] for length in _OVERHEAD_PROMPT_TOKENS}
    for number in range(rounds):
        for length, times in _overhead_round(model, pairs=pairs, log=log).items():
            found[length].append(times)
            say(f"round {number + 1} of {rounds}, {length} tokens: on over off {_ratio(times):.4f}")
    return [_overhead(length, times) for length, times in found.items()]


class _Pair(NamedTuple):
    """Seconds of one prompt with the tier and without."""

    on: float
    off: float


def _overhead_round(model: Path, *, pairs: int, log: Path) -> dict[int, list[_Pair]]:
    core = str(max(os.sched_getaffinity(0)))
    longest = max(_OVERHEAD_PROMPT_TOKENS) + _OVERHEAD_OUTPUT_TOKENS + 64
    found: dict[int, list[_Pair]] = {length: [] for length in _OVERHEAD_PROMPT_TOKENS}
    with (
        bench_engine(model, tier=None, max_model_len=longest, log=log, cores=core) as off,
        bench_engine(
            model,
            tier=_TIER,
            max_model_len=longest,
            log=log.with_suffix(".on.log"),
            cores=core,
        ) as on,
    ):
        for seed in range(-2, pairs):  # two to warm up
            for length, times in found.items():
                ask = Ask(seed, length, _OVERHEAD_OUTPUT_TOKENS)
                took = {}
                for engine in (off, on) if seed % 2 else (on, off):
                    took[id(engine)] = engine.run(ask).seconds
                    engine.rest()
                if seed >= 0:
                    times.append(_Pair(took[id(on)], took[id(off)]))
    return found


def _ratio(pairs: Sequence[_Pair]) -> float:
    return median(pair.on / pair.off for pair in pairs)


def _overhead(prompt_tokens: int, rounds: Sequence[Sequence[_Pair]]) -> dict[str, Any]:
    """Compare times with the tier and without: pair by pair in each round, then over rounds."""
    ratios = [_ratio(pairs) for pairs in rounds]
    every = [pair for pairs in rounds for pair in pairs]
    return {
        "rounds": len(rounds),
        "pairs": len(every),
        "prompt_tokens": prompt_tokens,
        "output_tokens": _OVERHEAD_OUTPUT_TOKENS,
        "median_off_s": median(pair.off for pair in every),
        "median_extra_s": median(pair.on - pair.off for pair in every),
        "median_ratio": median(ratios),
        "ratio_ci95": _confidence_95(ratios),
        "ratios_of_rounds": ratios,
    }


def _confidence_95(values: Sequence[float]) -> tuple[float, float]:
    """Return the bootstrap percentile interval of the median (Efron and Tibshirani 1993, chapter 13)."""
    numbers = random.Random(0)  # noqa: S311 - not for secrets
    medians = sorted(median(numbers.choices(values, k=len(values))) for _ in range(_RESAMPLES))
    return medians[int(0.025 * _RESAMPLES)], medians[int(0.975 * _RESAMPLES)]


@click.command()
@click.option("--model", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Model folder.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("build/bench/connector.json"))
@click.option(
    "--only", type=click.Choice(["index", "ttft", "overhead"]), multiple=True, help="Leave out the others."
)
@click.option("--prompt-tokens", default=15_400, show_default=True, help="Prompt length of ttft.")
@click.option("--repeats", default=5, show_default=True, help="Prompts of ttft.")
@click.option("--rounds", default=5, show_default=True, help="Rounds of overhead: engines start anew.")
@click.option("--pairs", default=10, show_default=True, help="Pairs of overhead in a round.")
def connector(  # noqa: PLR0913, PLR0917 - one parameter for each option
    model: Path | None,
    out: Path,
    only: tuple[str, ...],
    prompt_tokens: int,
    repeats: int,
    rounds: int,
    pairs: int,
) -> None:
    """Measure the connector: its index beside vLLM's, TTFT from the tier, and what the tier costs unused."""
    console = Console()
    with tempfile.TemporaryDirectory() as scratch:
        folder = model or Path(scratch)
        if model is None and set(only) != {"index"}:
            write_bench_model(folder)
        logs = out.parent
        parts: dict[str, Callable[[], Any]] = {
            "index": bench_index,
            "ttft": lambda: bench_ttft(
                folder,
                prompt_tokens=prompt_tokens,
                repeats=repeats,
                log=logs / "connector-ttft.log",
            ),
            "overhead": lambda: bench_overhead(
                folder,
                rounds=rounds,
                pairs=pairs,
                log=logs / "connector-overhead.log",
                say=console.print,
            ),
        }
        report: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
        for name in only or tuple(parts):
            with console.status(f"measuring {name}"):
                try:
                    report[name] = parts[name]()
                except ConnectorError as error:
                    raise click.ClickException(str(error)) from error
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(json.dumps(report, indent=2) + "\n")
    console.print(_table(report))
    console.print(f"[dim]{out}[/dim]")


def _table(report: dict[str, Any]) -> Table:
    table = Table("what", "measured", "beside", "limit", title="kvtier connector")
    if index := report.get("index"):
        table.add_row(
            "index, resident bytes a block",
            f"{index['kvtier_bytes_per_block']:.0f}",
            f"vLLM's LRU {index['vllm_bytes_per_block']:.0f}",
            "100",
        )
        table.add_row(
            f"index, longest operation on {index['batch']} keys, ms",
            f"{index['kvtier_max_ms']:.2f}",
            f"vLLM's LRU {index['vllm_max_ms']:.2f}",
            "1",
        )
        table.add_row(
            "  of it on the CPU (the rest is other processes), ms",
            f"{index['kvtier_max_cpu_ms']:.2f}",
            f"vLLM's LRU {index['vllm_max_cpu_ms']:.2f}",
            "",
        )
    if ttft := report.get("ttft"):
        beside = f"device hit {ttft['device_hit_s'] * 1e3:.1f} ms, cold {ttft['cold_s']:.2f} s"
        table.add_row(
            f"TTFT from the CPU tier, {ttft['prompt_tokens']} tokens",
            f"{ttft['cpu_tier_s'] * 1e3:.1f} ms, outputs equal: {ttft['outputs_equal']}",
            beside,
            "",
        )
        table.add_row("  over a device hit", f"{ttft['over_device_hit']:.3f}", "", "1.10")
        table.add_row("  times faster than cold", f"{ttft['speedup']:.0f}", "", "at least 100")
    for overhead in report.get("overhead", ()):
        low, high = overhead["ratio_ci95"]
        table.add_row(
            f"tier on but unused, over off, {overhead['prompt_tokens']} + {overhead['output_tokens']} tokens",
            f"{overhead['median_ratio']:.4f}, {overhead['median_extra_s'] * 1e3:+.1f} ms",
            f"95% interval {low:.4f} to {high:.4f}, {overhead['rounds']} rounds, {overhead['pairs']} pairs "
            f"of {overhead['median_off_s']:.2f} s",
            "1.005",
        )
    return table
