"""``kvtier bench connector``: measures what is asked for, prints it and adds it to a JSON file."""

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from rich.console import Console

from kvtier_connector.bench.disk import bench_disk
from kvtier_connector.bench.gpu import bench_gpu
from kvtier_connector.bench.hit_rate.compare import bench_hit_rate
from kvtier_connector.bench.index import bench_index
from kvtier_connector.bench.model import write_bench_model
from kvtier_connector.bench.never_slower.compare import bench_never_slower
from kvtier_connector.bench.overhead import bench_overhead
from kvtier_connector.bench.region import bench_region
from kvtier_connector.bench.table import table
from kvtier_connector.bench.ttft import TIER, bench_ttft
from kvtier_connector.bench.ttft_disk import bench_ttft_disk
from kvtier_connector.bench.workloads.compare import bench_workloads
from kvtier_connector.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Callable

PARTS: Final = (
    "index",
    "hit_rate",
    "region",
    "disk",
    "disk_memory",
    "ttft",
    "ttft_disk",
    "workloads",
    "overhead",
    "never_slower",
)
_GPU: Final = "gpu"
"""Only where it is asked for: the other parts need none."""
_NEEDS_NO_MODEL: Final = {"index", "hit_rate", "region", "disk", "disk_memory", "never_slower", _GPU}
_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a device that is not the limit


@click.command()
@click.option("--model", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Model folder.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("build/bench/connector.json"))
@click.option("--only", type=click.Choice([*PARTS, _GPU]), multiple=True, help="Leave out the others.")
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="On the disk to be measured; by default the result's.",
)
@click.option("--prompt-tokens", default=15_400, show_default=True, help="Prompt length of ttft, ttft_disk.")
@click.option("--repeats", default=5, show_default=True, help="Prompts of ttft, ttft_disk.")
@click.option("--pairs", default=40, show_default=True, help="Pairs of prompts of overhead.")
@click.option("--rounds", default=15, show_default=True, help="Rounds of disk.")
def connector(  # noqa: PLR0913, PLR0917 - one parameter for each option
    model: Path | None,
    out: Path,
    only: tuple[str, ...],
    folder: Path | None,
    prompt_tokens: int,
    repeats: int,
    pairs: int,
    rounds: int,
) -> None:
    """Measure the connector: memory, index, eviction, disk, time to first token, and what it costs unused."""
    console = Console()
    say = console.print
    measured = only or PARTS
    out.parent.mkdir(parents=True, exist_ok=True)
    disk = (folder or out.parent).resolve()
    with tempfile.TemporaryDirectory() as scratch:
        weights = model or Path(scratch)
        if model is None and not _NEEDS_NO_MODEL.issuperset(measured):
            write_bench_model(weights)

        def log(part: str) -> Path:
            return out.parent / f"connector-{part}.log"

        parts: dict[str, Callable[[], Any]] = {
            "index": bench_index,
            "hit_rate": bench_hit_rate,
            "region": bench_region,
            "disk": lambda: bench_disk(disk, log=log("disk"), say=say, rounds=rounds),
            "disk_memory": lambda: bench_disk(
                _MEMORY,
                log=log("disk-memory"),
                say=say,
                rounds=rounds,
                kept_bytes=256 << 20,
                sample_bytes=128 << 20,
            ),
            "ttft": lambda: bench_ttft(
                weights, prompt_tokens=prompt_tokens, repeats=repeats, log=log("ttft"), say=say
            ),
            "ttft_disk": lambda: bench_ttft_disk(
                weights,
                prompt_tokens=prompt_tokens,
                prompts=repeats,
                folder=disk,
                log=log("ttft-disk"),
                say=say,
            ),
            "workloads": lambda: bench_workloads(weights, log=log("workloads"), say=say),
            "overhead": lambda: bench_overhead(weights, TIER, pairs=pairs, log=log("overhead"), say=say),
            "never_slower": lambda: bench_never_slower(folder=disk, say=say),
            _GPU: bench_gpu,
        }
        report: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
        for name in measured:
            with console.status(f"measuring {name}"):
                try:
                    report[name] = parts[name]()
                except ConnectorError as error:
                    raise click.ClickException(str(error)) from error
            out.write_text(json.dumps(report, indent=2) + "\n")
    console.print(table({name: report[name] for name in measured}))
    console.print(f"[dim]{out}[/dim]")
