"""The parts of `kvtier bench connector`: each a module with `measure` and `rows`, and one line here.

Loads none of them before it is measured: the command line lists their names, and some take seconds.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from kvtier_connector.bench.model import write_bench_model
from kvtier_connector.bench.vllm_arguments import Given

PARTS: Final[Mapping[str, str]] = {
    "region": "kvtier_connector.bench.region",
    "ttft": "kvtier_connector.bench.ttft",
    "workloads": "kvtier_connector.bench.workloads",
    "gpu": "kvtier_connector.bench.gpu",
}
"""Modules by the names that users type."""
ONLY_WHEN_ASKED: Final = ("gpu",)
"""The other parts need no GPU."""

Row = tuple[str, str, str, str]
"""What, measured, beside, limit."""


@dataclass(frozen=True, slots=True)
class Part:
    """What a part's module has."""

    measure: "Callable[[Run], Any]"  # measures it; returns the figures as JSON has them
    rows: Callable[[Any], Iterable[Row]]  # rows of the table of these figures


def require(*modules: str) -> None:
    """Look for modules without importing them, for those that only a part's processes import.

    Raises:
        ModuleNotFoundError: The first that is not installed.
    """
    for name in modules:
        if find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def load(module: str) -> Part:
    """Load a part's module, of `PARTS`."""
    found = import_module(module)
    return Part(found.measure, found.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run."""

    model: Path | None  # folder of a model with weights; None for random ones
    shape: str  # sizes of the model with random weights
    scratch: Path  # folder for that model
    out: Path  # file of the report, beside which logs are
    folder: Path  # on the disk to be measured
    prompt_tokens: int  # prompt length of the parts that measure time to first token
    repeats: int  # their prompts
    gpu: str  # the GPU's name; empty where vLLM computes on the CPU
    sides: tuple[str, ...]  # what is compared on a GPU
    turns: int  # lives of each of them
    given: Given  # vLLM's arguments for the engines of ttft and workloads
    say: Callable[[str], None]  # is told how far a part is

    def log(self, name: str) -> Path:
        """Return a file beside the report for the engines' output."""
        return self.out.parent / f"connector-{name}.log"

    def weights(self) -> Path:
        """Return the folder of a model with weights; random ones are written for the first part that asks."""
        if self.model is not None:
            return self.model
        folder = self.scratch / "weights"
        return folder if folder.exists() else write_bench_model(folder, self.shape)
