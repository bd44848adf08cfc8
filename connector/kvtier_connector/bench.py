"""``kvtier bench connector``: the connector's figures, measured beside what they are compared with."""

import json
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import click
from rich.console import Console
from rich.table import Table

from kvtier_connector.bench_engine import Answer, Ask, bench_engine
from kvtier_connector.bench_index import bench_index
from kvtier_connector.bench_model import write_bench_model
from kvtier_connector.bench_overhead import bench_overhead
from kvtier_connector.config import GIB, ConnectorConfig, kv_transfer_config
from kvtier_connector.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Callable

_TIER: Final = ConnectorConfig(cpu_capacity_bytes=GIB)
_HITS_PER_PROMPT: Final = 3


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
    settings = {
        "model": str(model),
        "max_model_len": prompt_tokens + 64,
        "kv_transfer_config": kv_transfer_config(_TIER),
    }
    with bench_engine(settings, log=log) as engine:
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


@click.command()
@click.option("--model", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Model folder.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("build/bench/connector.json"))
@click.option(
    "--only", type=click.Choice(["index", "ttft", "overhead"]), multiple=True, help="Leave out the others."
)
@click.option("--prompt-tokens", default=15_400, show_default=True, help="Prompt length of ttft.")
@click.option("--repeats", default=5, show_default=True, help="Prompts of ttft.")
@click.option("--pairs", default=40, show_default=True, help="Pairs of prompts of overhead.")
def connector(  # noqa: PLR0913, PLR0917 - one parameter for each option
    model: Path | None,
    out: Path,
    only: tuple[str, ...],
    prompt_tokens: int,
    repeats: int,
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
                _TIER,
                pairs=pairs,
                log=logs / "connector-overhead.log",
                say=console.print,
            ),
        }
        report: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
        measured = only or tuple(parts)
        for name in measured:
            with console.status(f"measuring {name}"):
                try:
                    report[name] = parts[name]()
                except ConnectorError as error:
                    raise click.ClickException(str(error)) from error
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(json.dumps(report, indent=2) + "\n")
    console.print(_table({name: report[name] for name in measured}))
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
        length = (
            f"{overhead['prompt_tokens']} + {overhead['output_tokens']} tokens, {overhead['pairs']} pairs"
        )
        kvtier, empty = (_overhead(overhead, name) for name in ("kvtier", "empty"))
        table.add_row(
            f"tier on but unused, over off, {length}",
            kvtier,
            f"a connector that does nothing {empty}",
            "1.005",
        )
    return table


def _overhead(figures: dict[str, Any], name: str) -> str:
    low, high = figures[f"{name}_ratio_ci95"]
    extra_ms = figures[f"{name}_extra_s"] * 1e3
    return f"{figures[f'{name}_ratio']:.4f} (95% interval {low:.4f} to {high:.4f}), {extra_ms:+.1f} ms"
