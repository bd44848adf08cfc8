"""Sets of models, by name: those of every run, and the library's, which take as long again."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from tests.engine.planning.oracle.cases import Case, cases
from tests.engine.planning.oracle.library import library_cases

SETS: Final[Mapping[str, Callable[[], Iterable[Case]]]] = {"usual": cases, "library": library_cases}
