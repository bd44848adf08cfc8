"""What `kvtier bench connector` measures: a part is a module with `measure` and `rows`, and one line here.

Loads none of them before it is measured: the command line lists their names, and some take seconds.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kvtier_connector.bench.run import Run

PARTS: Final[Mapping[str, str]] = {
    "index": "kvtier_connector.bench.parts.memory.index",
    "region": "kvtier_connector.bench.parts.memory.region",
    "ttft": "kvtier_connector.bench.parts.ttft.part",
    "workloads": "kvtier_connector.bench.parts.workloads.part",
    "never_slower": "kvtier_connector.bench.parts.never_slower.compare",
    "growth": "kvtier_connector.bench.parts.memory.growth",
    "gpu": "kvtier_connector.bench.parts.memory.gpu",
}
"""Modules by the names that users type."""
ONLY_WHEN_ASKED: Final = ("gpu",)
"""The other parts need no GPU."""

Row = tuple[str, str, str, str]
"""What, measured, beside, limit."""


@dataclass(frozen=True, slots=True)
class Part:
    """What a part's module has.

    Attributes:
        measure: Measures it; returns the figures as JSON has them.
        rows: Rows of the table of these figures.
    """

    measure: "Callable[[Run], Any]"
    rows: Callable[[Any], Iterable[Row]]


def require(*modules: str) -> None:
    """Look for modules without importing them, for those that only a part's processes import.

    Raises:
        ModuleNotFoundError: The first that is not installed.
    """
    for name in modules:
        if find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def load(module: str) -> Part:
    """Load a part.

    Args:
        module: Of `PARTS`.

    Raises:
        ModuleNotFoundError: A package that it needs is not installed.
    """
    found = import_module(module)
    return Part(found.measure, found.rows)
