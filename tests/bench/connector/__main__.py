"""The parts of `kvtier bench connector`, and those that compare it with others for its own figures.

python -m tests.bench.connector --out build/bench/connector.json

LMCache, fio and vLLM's file-system tier are no part of the product; neither is what only they are for.
"""

import signal
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Final

import click
from tests.bench.connector import hit_rate, overhead
from tests.bench.connector.disk import compare as disk

from kvtier_connector.bench.choices import DEMO, ONLY_WHEN_ASKED, PARTS, names_of, names_shown
from kvtier_connector.bench.command import connector
from kvtier_connector.bench.measure import Part, Run, load, measure

NAMES: Final = (
    *("index", "hit_rate", "region", "disk", "disk_memory", "ttft", "ttft_disk", "workloads", "overhead"),
    *("never_slower", "growth", "steps", "remote", "gpu"),
)
_MODULES: Final = {
    name: f"tests.bench.connector.{name}"
    for name in ("index", "ttft_disk", "workloads", "never_slower", "growth", "steps", "remote")
}
"""Parts that are loaded when they are asked for: most need vLLM."""
_OPTIONS: Final = [
    click.Option(
        ["--only"],
        multiple=True,
        callback=names_of(NAMES),
        metavar=names_shown(NAMES),
        help="Leave out the others; may be repeated.",
    ),
    click.Option(["--pairs"], default=40, show_default=True, help="Pairs of prompts of overhead."),
    click.Option(
        ["--folder"],
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="For the files of disk tiers; by default the result's.",
    ),
    click.Option(["--rounds"], default=15, show_default=True, help="Rounds of disk."),
]


def parts(names: tuple[str, ...], *, pairs: int, rounds: int, folder: Path) -> dict[str, Part]:
    """The parts of these names, the product's and those here.

    Args:
        names: In the order in which they are measured.
        pairs: Of prompts of overhead.
        rounds: Of disk.
        folder: On the disk to be measured.
    """
    here = {
        "hit_rate": Part(hit_rate.measure, hit_rate.rows),
        "disk": Part(partial(disk.measure, folder=folder, rounds=rounds), disk.rows),
        "disk_memory": Part(partial(disk.measure_memory, rounds=rounds), disk.rows),
        "overhead": Part(partial(overhead.measure, pairs=pairs), overhead.rows),
    }
    chosen = {name: here.get(name) or load(_MODULES.get(name) or PARTS[name]) for name in names}
    for name in {*names} & {"ttft_disk", "never_slower"}:
        module = import_module(_MODULES[name])
        chosen[name] = Part(partial(module.measure, folder=folder), module.rows)
    return chosen


def run(*, only: tuple[str, ...], pairs: int, rounds: int, folder: Path | None, **options: object) -> None:
    """Measure the connector, beside others."""
    chosen = Run(**options | {"shape": options["shape"] or DEMO})  # type: ignore[arg-type]
    names = only or tuple(name for name in NAMES if name not in ONLY_WHEN_ASKED)
    disk_folder = (folder or chosen.out.parent).resolve()
    measure(chosen, parts(names, pairs=pairs, rounds=rounds, folder=disk_folder))


main = click.Command(
    "connector",
    params=[*(each for each in connector.params if each.name != "only"), *_OPTIONS],
    callback=run,
    help=run.__doc__,
)


def _end(number: int, _frame: FrameType | None) -> None:
    """Ends as Ctrl-C does: what was taken, from processes to huge pages, is given back."""
    sys.exit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)
    main()
