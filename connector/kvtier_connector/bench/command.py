"""``kvtier bench connector``: measures what is asked for, prints it and adds it to a JSON file."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console

from kvtier_connector.bench.given import Given
from kvtier_connector.bench.names import names_of, names_shown
from kvtier_connector.bench.parts import GPU, PARTS, Options, parts
from kvtier_connector.bench.shapes import DEMO, SHAPES
from kvtier_connector.bench.sides.comparison import TURNS
from kvtier_connector.bench.sides.names import PARTS as COMPARED
from kvtier_connector.bench.sides.names import SIDES
from kvtier_connector.bench.summary import termination_message
from kvtier_connector.bench.table import table
from kvtier_connector.errors import ConnectorError

_ONLY: Final = (*PARTS, GPU)


@click.command()
@click.option("--model", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Model folder.")
@click.option("--shape", type=click.Choice([*SHAPES]), help=f"Sizes of a random model.  [default: {DEMO}]")
@click.option("--out", type=click.Path(path_type=Path), default=Path("build/bench/connector.json"))
@click.option(
    "--only",
    multiple=True,
    callback=names_of(_ONLY),
    metavar=names_shown(_ONLY),
    help="Leave out the others; may be repeated.",
)
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="On the disk to be measured; by default the result's.",
)
@click.option("--prompt-tokens", default=15_400, show_default=True, help="Prompt length of ttft, ttft_disk.")
@click.option("--repeats", default=5, show_default=True, help="Prompts of ttft, ttft_disk.")
@click.option("--pairs", default=40, show_default=True, help="Pairs of prompts of overhead.")
@click.option("--rounds", default=15, show_default=True, help="Rounds of disk.")
@click.option(
    "--sides",
    multiple=True,
    callback=names_of(SIDES),
    metavar=names_shown(SIDES),
    help="What ttft and workloads compare on a GPU; all by default.",
)
@click.option(
    "--turns",
    type=click.IntRange(1),
    default=TURNS,
    show_default=True,
    help="Engines of each side that ttft and workloads start on a GPU.",
)
@click.option(
    "--termination-log",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the figures here, as JSON of at most 4096 bytes.",
)
@click.argument("vllm_args", nargs=-1, type=click.UNPROCESSED)
def connector(  # noqa: PLR0913, PLR0917 - one parameter for each option
    model: Path | None,
    shape: str | None,
    out: Path,
    only: tuple[str, ...],
    folder: Path | None,
    prompt_tokens: int,
    repeats: int,
    pairs: int,
    rounds: int,
    sides: tuple[str, ...],
    turns: int,
    termination_log: Path | None,
    vllm_args: tuple[str, ...],
) -> None:
    """Measure the connector: memory, index, eviction, disk, time to first token, and what it costs unused.

    VLLM_ARGS, after --, are arguments of `vllm serve` for the engines of ttft and workloads.
    """
    console = Console()
    if model and shape:
        raise click.UsageError("give --model or --shape: a model has its own sizes")
    measured = only or PARTS
    out.parent.mkdir(parents=True, exist_ok=True)
    done: dict[str, Any] = {}
    about = {"shape": model.name if model else shape or DEMO}
    with _left_behind(termination_log, done, about), tempfile.TemporaryDirectory() as scratch:
        gpu = _gpu() if {*COMPARED} & {*measured} else ""
        if sides and not gpu:
            raise click.UsageError(
                "--sides needs a GPU: on a CPU one engine has its connector in and out, in turns"
            )
        about["device"] = gpu or "cpu"
        options = Options(
            model=model,
            shape=shape or DEMO,
            scratch=Path(scratch),
            out=out,
            folder=(folder or out.parent).resolve(),
            prompt_tokens=prompt_tokens,
            repeats=repeats,
            pairs=pairs,
            rounds=rounds,
            gpu=gpu,
            sides=sides or SIDES,
            turns=turns,
            given=Given.read(vllm_args),
        )
        runs = parts(options, console.print)
        report: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
        for name in measured:
            with console.status(f"measuring {name}"):
                report[name] = done[name] = runs[name]()
            out.write_text(json.dumps(report, indent=2) + "\n")
    console.print(table(done))
    console.print(f"[dim]{out}[/dim]")


@contextmanager
def _left_behind(path: Path | None, done: dict[str, Any], about: dict[str, str]) -> Iterator[None]:
    """Write what has been measured, and what ended it before all was, where Kubernetes looks."""
    error = "ended before all was measured"
    try:
        yield
        error = ""
    except ConnectorError as caught:
        error = str(caught)
        raise click.ClickException(error) from caught
    except click.ClickException as caught:
        error = caught.message
        raise
    finally:
        if path is not None:
            path.write_text(termination_message(done, about | _versions(), error), encoding="utf-8")


def _gpu() -> str:
    """Return the name of the GPU on which vLLM computes; empty where it is built for CPUs."""
    from vllm.platforms import current_platform  # noqa: PLC0415 - takes seconds, for two parts

    return str(current_platform.get_device_name()) if current_platform.is_cuda_alike() else ""


def _versions() -> dict[str, str]:
    from vllm import __version__  # noqa: PLC0415 - takes seconds

    return {"kvtier": version("kvtier"), "vllm": str(__version__)}
