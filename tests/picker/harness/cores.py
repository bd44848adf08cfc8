"""Which cores a process may run on: a picker has one to itself, everything else has the others."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cores:
    """The cores of this machine that a comparison uses.

    Attributes:
        picker: The one core of the picker whose turn it is.
        others: Those of Envoy, the engines and the load.
    """

    picker: frozenset[int]
    others: frozenset[int]


def split_cores(available: frozenset[int]) -> Cores:
    """The last core for the picker, the rest for the others.

    Raises:
        ValueError: There is only one.
    """
    if len(available) <= 1:
        raise ValueError("a comparison of pickers needs two cores: one is the picker's alone")
    last = max(available)
    return Cores(frozenset({last}), available - {last})


@contextmanager
def started_on(cores: frozenset[int]) -> Iterator[None]:
    """Processes that this thread starts run on these cores, with all of their threads."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
