"""`kvtier bench connector`: the command line. What it runs is loaded when it runs: help needs no vLLM."""

from importlib.util import find_spec
from pathlib import Path

import click

from kvtier_connector.bench.choices import (
    DEMO,
    ELSEWHERE,
    EVERY_SIDE,
    ONLY_WHEN_ASKED,
    PARTS,
    SHAPES,
    SIDES,
    TURNS,
    names_of,
    names_shown,
)
from kvtier_connector.complete import NEEDED


@click.command(short_help="The connector's parts on this machine, beside vLLM's own.")
@click.option("--model", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Model folder.")
@click.option("--shape", type=click.Choice([*SHAPES]), help=f"Sizes of a random model.  [default: {DEMO}]")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("build/bench/connector.json"), show_default=True,
    help="JSON to which the figures are added.",
)  # fmt: skip
@click.option(
    "--only", multiple=True, callback=names_of([*PARTS], ELSEWHERE), metavar=names_shown([*PARTS]),
    help="Leave out the others; may be repeated.",
)  # fmt: skip
@click.option(
    "--prompt-tokens", default=15_400, show_default=True, help="Prompt length of ttft; of remote at most."
)
@click.option("--repeats", default=5, show_default=True, help="Prompts of ttft and remote.")
@click.option(
    "--sides", multiple=True, callback=names_of(EVERY_SIDE), metavar="SIDE,...",
    help=f"Of ttft and workloads on a GPU: {', '.join(EVERY_SIDE)}.  [default: {','.join(SIDES)}]",
)  # fmt: skip
@click.option(
    "--turns", type=click.IntRange(1), default=TURNS, show_default=True,
    help="Engines of each side that workloads starts, and ttft on a GPU.",
)  # fmt: skip
@click.option(
    "--termination-log", type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the figures here, as JSON of at most 4096 bytes.",
)  # fmt: skip
@click.argument("vllm_args", nargs=-1, type=click.UNPROCESSED)
def connector(only: tuple[str, ...], **options: object) -> None:
    """Measure whether the tier pays on this machine: memory, time to first token, workloads, copies of a GPU.

    VLLM_ARGS, after --, are arguments of `vllm serve` for the engines of ttft and workloads.
    """
    if options["model"] and options["shape"]:
        raise click.UsageError("give --model or --shape: a model has its own sizes")
    for needed in NEEDED:  # without importing them: that takes seconds
        if find_spec(needed) is None:
            raise ModuleNotFoundError(f"No module named {needed!r}", name=needed)
    from kvtier_connector.bench.measure import Run, load, measure  # noqa: PLC0415 - help needs none of it

    run = Run(**options | {"shape": options["shape"] or DEMO})  # type: ignore[arg-type]
    names = only or [name for name in PARTS if name not in ONLY_WHEN_ASKED]
    measure(run, {name: load(PARTS[name]) for name in names})
