"""What can be asked of the connector's benchmarks, by name: parts, sides, shapes; imports nothing heavy."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import click

REMOTE: Final = "remote"
PARTS: Final[Mapping[str, str]] = {
    "region": "kvtier_connector.bench.region",
    "ttft": "kvtier_connector.bench.ttft",
    "workloads": "kvtier_connector.bench.workloads",
    REMOTE: "kvtier_connector.bench.remote_tier",
    "gpu": "kvtier_connector.bench.gpu",
}
"""Modules by the names that users type."""
ONLY_WHEN_ASKED: Final = (REMOTE, "gpu")  # the other parts need neither a store's program nor a GPU
ELSEWHERE: Final = {
    name: f"measures kvtier itself; in its repository, make bench-connector BENCH_ARGS='--only {name}'"
    for name in (
        "index",
        "hit_rate",
        "disk",
        "disk_memory",
        "ttft_disk",
        "overhead",
        "never_slower",
        "growth",
        "steps",
    )
}
NONE: Final = "none"
VLLM: Final = "vllm"
KVTIER: Final = "kvtier"
SIDES: Final = (NONE, VLLM, KVTIER)
"""What is compared where nobody says what."""
VLLM_DISK: Final = "vllm-disk"
WHOLE_LOADS: Final = "kvtier-whole-loads"
SYNC: Final = "kvtier-sync"
LMCACHE: Final = "lmcache"
TITLES: Final[Mapping[str, str]] = {
    NONE: "no tier",
    VLLM: "vLLM's OffloadingConnector",
    VLLM_DISK: "the same with a disk behind it",
    KVTIER: "kvtier",
    WHOLE_LOADS: "kvtier, layered loads off",
    SYNC: "kvtier, async scheduling off",
    LMCACHE: "LMCache",
}
"""Every side, for people; `sides.py` says what each of them gives its engine."""
EVERY_SIDE: Final = tuple(TITLES)
BESIDE: Final = frozenset((VLLM, VLLM_DISK, LMCACHE))
"""Those whose tier is ordinary memory, whatever pages kvtier's has."""
COMPARED_PARTS: Final = ("ttft", "workloads")  # the parts of `kvtier bench connector` that compare them
TURNS: Final = 2  # engines of each side, where nobody says how many


@dataclass(frozen=True, slots=True)
class Shape:
    """One model's sizes."""

    models: tuple[str, ...]  # names on Hugging Face of those that have them
    config: Mapping[str, Any]  # what decides them of config.json; all layers have full attention


def _read(path: Path) -> dict[str, Shape]:
    rows = json.loads(path.read_text(encoding="utf-8")).items()
    return {name: Shape(tuple(row["models"]), row["config"]) for name, row in rows}


SHAPES: Final[Mapping[str, Shape]] = _read(Path(__file__).with_name("shapes.json"))
DEMO: Final = "demo"
"""The smallest, which a CPU computes: 73 million parameters, 4,096 bytes of KV cache a token in bfloat16."""


def shape_of(model: str) -> str | None:
    """Return the name of a model's shape, or None if no line of the table is for that model."""
    for name, shape in SHAPES.items():
        if model.lower() in (known.lower() for known in shape.models):
            return name
    return None


Check = Callable[[click.Context, click.Parameter, Sequence[str]], tuple[str, ...]]


_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def names_of(choices: Sequence[str], elsewhere: Mapping[str, str] = _NOTHING) -> Check:
    """Return a callback for an option with `multiple=True`: the names in the order given, each once.

    What is not among the choices ends the command with a line that lists them, or says where else it is to be
    had.
    """

    def check(_context: click.Context, _option: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
        names = [name.strip() for value in values for name in value.split(",")]
        for name in names:
            if name in elsewhere:
                raise click.BadParameter(f"{name!r}: {elsewhere[name]}.")
            if name not in choices:
                known = ", ".join(map(repr, choices))
                raise click.BadParameter(f"{name!r} is not one of {known}.")
        return tuple(dict.fromkeys(names))

    return check


def names_shown(choices: Sequence[str]) -> str:
    """Return what stands for such an option's value in its help."""
    return f"[{'|'.join(choices)}],..."
