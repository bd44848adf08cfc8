"""Sizes of the models that benchmarks draw random weights for; a further one is one more line of shapes.json.

Imports nothing heavy: the operator reads the names when it makes a benchmark's Job.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Shape:
    """One model's sizes.

    Args:
        models: names on Hugging Face of those that have them.
        config: what decides them of config.json; all layers have full attention.
    """

    models: tuple[str, ...]
    config: Mapping[str, Any]


def _read(path: Path) -> dict[str, Shape]:
    rows = json.loads(path.read_text(encoding="utf-8")).items()
    return {name: Shape(tuple(row["models"]), row["config"]) for name, row in rows}


SHAPES: Final[Mapping[str, Shape]] = _read(Path(__file__).with_name("shapes.json"))
DEMO: Final = "demo"
"""The smallest, which a CPU computes: 73 million parameters, 4,096 bytes of KV cache a token in bfloat16."""


def shape_of(model: str) -> str | None:
    """Return the name of a model's shape, or None if no line of the table is for that model.

    Args:
        model: name on Hugging Face, in any case.
    """
    for name, shape in SHAPES.items():
        if model.lower() in (each.lower() for each in shape.models):
            return name
    return None
