"""The parts of `kvtier bench connector`, and those that compare it with others for its own figures.

python -m tests.bench.connector --out build/bench/connector.json

LMCache, fio and vLLM's file-system tier are no part of the product; neither is what only they are for.
"""

import signal
import sys
from functools import partial
from types import FrameType
from typing import Final

import click
from tests.bench.connector import overhead
from tests.bench.connector.disk import compare as disk
from tests.bench.connector.hit_rate import compare as hit_rate

from kvtier_connector.bench.choices import names_of, names_shown
from kvtier_connector.bench.command import connector
from kvtier_connector.bench.measure import BenchOptions, measure
from kvtier_connector.bench.part import ONLY_WHEN_ASKED, PARTS, Part, load

NAMES: Final = (
    *("index", "hit_rate", "region", "disk", "disk_memory", "ttft", "ttft_disk", "workloads", "overhead"),
    *("never_slower", "growth", "gpu"),
)
_MODULES: Final = {
    name: f"tests.bench.connector.{name}"
    for name in ("index", "ttft_disk", "workloads", "never_slower", "growth")
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
    click.Option(["--rounds"], default=15, show_default=True, help="Rounds of disk."),
]


def parts(names: tuple[str, ...], *, pairs: int, rounds: int) -> dict[str, Part]:
    """The parts of these names, the product's and those here.

    Args:
        names: In the order in which they are measured.
        pairs: Of prompts of overhead.
        rounds: Of disk.
    """
    here = {
        "hit_rate": Part(hit_rate.measure, hit_rate.rows),
        "disk": Part(partial(disk.measure, rounds=rounds), disk.rows),
        "disk_memory": Part(partial(disk.measure_memory, rounds=rounds), disk.rows),
        "overhead": Part(partial(overhead.measure, pairs=pairs), overhead.rows),
    }
    return {name: here.get(name) or load(_MODULES.get(name) or PARTS[name]) for name in names}


def run(*, pairs: int, rounds: int, **options: object) -> None:
    """Measure the connector, beside others."""
    chosen = BenchOptions(**options)  # type: ignore[arg-type]
    names = chosen.only or tuple(name for name in NAMES if name not in ONLY_WHEN_ASKED)
    measure(chosen, parts(names, pairs=pairs, rounds=rounds))


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
