"""The shared tier's client beside plain sockets and redis-py, with one real server on loopback.

python -m tests.bench.remote --out build/bench/remote.json --others PYTHON

PYTHON is that of an environment with `redis[hiredis]`, which is no part of the project; without it redis-py
is left out. Sides take turns, so that a noisy machine disturbs all; each turn is a process of its own. What a
server takes for memory that it touches the first time is left out: it has stored as much before.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, Final

import click
from tests.bench.remote import sides
from tests.shared.stores import PROGRAMS, Store, running

MIB: Final = 1 << 20
GIB: Final = 1 << 30
SIZES_BYTES: Final = (4 * MIB, MIB)
DEEDS: Final = ("SET", "GET")
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side took for one deed."""

    gb_per_s: float
    client_s_per_gib: float  # of a core
    server_s_per_gib: float


@dataclass(frozen=True, slots=True)
class Load:
    """What a turn moves."""

    size_bytes: int  # of a value
    values_bytes: int  # of all values, each under its own key
    rounds: int


def take_turn(store: Store, side: Sequence[str], deed: str, load: Load) -> Turn:
    """Have a process of its own move values; a side is its Python and its name."""
    values = load.values_bytes // load.size_bytes
    numbers = map(str, (store.address.port, load.size_bytes, values, load.rounds))
    python, name = side
    before_s = cpu_s(store.process.pid)
    done = subprocess.run(  # noqa: S603 - our own command
        [python, sides.__file__, name, deed, *numbers], stdout=subprocess.PIPE, check=True
    )
    server_s = cpu_s(store.process.pid) - before_s
    took = json.loads(done.stdout)
    moved_bytes = values * load.rounds * load.size_bytes
    gib = moved_bytes / GIB
    return Turn(moved_bytes / took["s"] / 1e9, took["cpu_s"] / gib, server_s / gib)


def cpu_s(pid: int) -> float:
    """Seconds of a core that a process has taken (proc(5), /proc/pid/stat)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def summary(turns: Sequence[Turn]) -> Mapping[str, Mapping[str, float]]:
    """Medians, and between what all lay."""
    return {
        name: {
            "median": round(median(figures), 3),
            "least": round(min(figures), 3),
            "most": round(max(figures), 3),
        }
        for name in Turn.__slots__
        if (figures := [getattr(turn, name) for turn in turns])
    }


def measure(store: Store, pythons: Mapping[str, str], load: Load, turns: int) -> Iterator[Mapping[str, Any]]:
    """Measure every deed of every size, the sides in turns."""
    for size_bytes, deed in product(SIZES_BYTES, DEEDS):
        load = replace(load, size_bytes=size_bytes)
        take_turn(store, (sys.executable, "sockets"), "SET", load)  # what is read, or replaced
        taken: dict[str, list[Turn]] = {side: [] for side in pythons}
        for _ in range(turns):
            for side, python in pythons.items():
                taken[side].append(take_turn(store, (python, side), deed, load))
        ratios = [
            ours.gb_per_s / theirs.gb_per_s
            for ours, theirs in zip(taken["kvtier"], taken["sockets"], strict=True)
        ]
        yield {
            "deed": deed,
            "value_mib": size_bytes // MIB,
            "of_sockets": round(median(ratios), 3),  # our rate, turn by turn
            "sides": {side: summary(figures) for side, figures in taken.items()},
        }


@click.command(context_settings={"show_default": True})
@click.option("--out", type=click.Path(path_type=Path), default=Path("build/bench/remote.json"))
@click.option("--program", type=click.Choice(list(PROGRAMS)), default="valkey")
@click.option("--others", metavar="PYTHON", default="", help="Of an environment with redis[hiredis].")
@click.option("--turns", default=7)
@click.option("--values-mib", default=256, help="Of all values together.")
@click.option("--rounds", default=4, help="How often a turn moves them all.")
def main(*, out: Path, program: str, others: str, turns: int, values_mib: int, rounds: int) -> None:  # noqa: PLR0913 - its options
    """Measure the shared tier's client beside others."""
    pythons = {"kvtier": sys.executable, "sockets": sys.executable}
    if others:
        pythons["redis-py"] = others
    room = ("--maxmemory", str(3 * values_mib * MIB))
    with tempfile.TemporaryDirectory() as folder, running(program, Path(folder), *room) as store:
        figures = list(measure(store, pythons, Load(0, values_mib * MIB, rounds), turns))
        version = store.connect()
        facts = version.facts(5.0)
        version.close()
    report = {
        "server": facts.version,
        "cores": len(os.sched_getaffinity(0)),
        "load_average": os.getloadavg()[0],
        "turns": turns,
        "remote": figures,
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    for row in figures:
        for side, told in row["sides"].items():
            rate, client, server = (told[name] for name in Turn.__slots__)
            click.echo(
                f"{row['deed']} {row['value_mib']} MiB {side:9} {rate['median']:5.2f} GB/s "
                f"({rate['least']:.2f}-{rate['most']:.2f}), client {client['median']:.2f} s/GiB "
                f"({client['least']:.2f}-{client['most']:.2f}), server {server['median']:.2f}"
            )
        click.echo(f"{row['deed']} {row['value_mib']} MiB kvtier is {row['of_sockets']:.2f} of sockets")


if __name__ == "__main__":
    main()
