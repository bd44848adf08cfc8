"""`kvtier bench connector`: the command line. What it runs is loaded when it runs: help needs no vLLM."""

from pathlib import Path
from typing import Final

import click

from kvtier_connector.bench.names import names_of, names_shown
from kvtier_connector.bench.part_names import GPU, PARTS
from kvtier_connector.bench.shapes import DEMO, SHAPES
from kvtier_connector.bench.sides.names import SIDES, TURNS

_ONLY: Final = (*PARTS, GPU)


@click.command(short_help="The connector's parts beside vLLM, LMCache and fio.")
@click.option("--model", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Model folder.")
@click.option("--shape", type=click.Choice([*SHAPES]), help=f"Sizes of a random model.  [default: {DEMO}]")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("build/bench/connector.json"),
    show_default=True,
    help="JSON to which the figures are added.",
)
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
def connector(**options: object) -> None:
    """Measure the connector: memory, index, eviction, disk, time to first token, and what it costs unused.

    VLLM_ARGS, after --, are arguments of `vllm serve` for the engines of ttft and workloads.
    """
    if options["model"] and options["shape"]:
        raise click.UsageError("give --model or --shape: a model has its own sizes")
    from kvtier_connector.bench.measure import Asked, measure  # noqa: PLC0415 - loads vLLM

    measure(Asked(**options))  # type: ignore[arg-type]
