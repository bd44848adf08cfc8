"""Which tests stay together on one of pytest-xdist's workers, and in which order they are given out."""

from typing import Final

from xdist.scheduler import LoadScopeScheduling

OF_THE_MACHINE: Final = (
    "tests/unit/bench/connector/test_disk.py",
    "tests/unit/connector/bench/test_region.py",
    "tests/unit/connector/machine/test_numa.py",
    "tests/unit/connector/region/test_growth.py",
    "tests/unit/connector/region/test_killed_engine.py",
    "tests/unit/connector/region/test_pin.py",
    "tests/unit/connector/region/test_region.py",
    "tests/engine/bench/test_disk.py",
    "tests/engine/connector/bench/test_gpu.py",
    "tests/engine/connector/bench/test_region.py",
    "tests/node/",
    "tests/cluster/node/",
    "tests/cluster/release/",
    "tests/cluster/harness/test_standing.py",
)
"""Tests that reserve or take huge pages, of which the machine has one pool, that start nodes, or look for
what is left of processes: one worker runs these, in this order. Those that collect garbage many times come
before an engine has filled the heap, those that need a cluster's tools last: the first time the tools are
still being built."""
_OF_A_CLUSTER: Final = ("tests/cluster/install/", "tests/cluster/")
"""Others share clusters without nodes, which take a while to start: one has kvtier installed."""
_ORDER: Final = (*OF_THE_MACHINE, "tests/engine/", *_OF_A_CLUSTER, "tests/picker/", "tests/unit/")
"""What takes long in one piece first, what consists of many small files last, for workers to end together."""


def place(nodeid: str) -> int:
    """Where in the order a test stands; those of one place keep theirs."""
    return next((at for at, start in enumerate(_ORDER) if nodeid.startswith(start)), len(_ORDER))


class TogetherByFile(LoadScopeScheduling):  # type: ignore[misc] # pytest-xdist has no types
    """Gives a worker all tests of a file at once, or all that are the machine's, or all of one cluster."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(OF_THE_MACHINE):
            return "machine"
        return next(filter(nodeid.startswith, _OF_A_CLUSTER), nodeid.partition("::")[0])
