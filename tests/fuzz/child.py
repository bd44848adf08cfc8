"""One target under atheris: `python -m tests.fuzz.child TARGET [options of libFuzzer] [corpus ...]`."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Final

import atheris
from tests.fuzz.targets import TARGETS
from tests.fuzz.timed import run_timed

_COMPILED: Final = "kvtier_scorer.index.prefix_index"
"""Numba compiles no branches that tell of themselves."""


def load_target(name: str) -> Callable[[bytes], None]:
    """Import a target, so that its branches are seen."""
    import_module(_COMPILED)
    with atheris.instrument_imports(include=list(TARGETS.get(name, [name]))):
        module = import_module(f"tests.fuzz.targets.{name}" if name in TARGETS else name)
    run: Callable[[bytes], None] = module.run
    return run


def main() -> None:
    """Fuzz until time is up or a fault is found."""
    run = load_target(sys.argv[1])
    atheris.Setup([sys.argv[0], *sys.argv[2:]], lambda data: run_timed(run, data))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
