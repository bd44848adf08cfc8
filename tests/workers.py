"""Which tests stay together on one of pytest-xdist's workers."""

from typing import Final

from xdist.scheduler import LoadScopeScheduling

_OF_THE_MACHINE: Final = (
    "tests/cluster/",
    "tests/node/",
    "tests/engine/connector/test_bench_disk.py",
    "tests/engine/connector/test_bench_gpu.py",
    "tests/engine/connector/test_two_ranks.py",
    "tests/engine/runtime/",
    "tests/unit/connector/test_bench_disk.py",
    "tests/unit/connector/test_bench_region.py",
    "tests/unit/connector/test_numa.py",
    "tests/unit/connector/test_pin.py",
    "tests/unit/connector/test_region.py",
)
"""Tests that reserve or take huge pages, of which the machine has one pool, and those that start nodes or
look for what is left of processes: one worker runs these, one after the other."""


class TogetherByFile(LoadScopeScheduling):  # type: ignore[misc] # pytest-xdist has no types
    """Gives a worker all tests of a file at once, or all that are the machine's."""

    def _split_scope(self, nodeid: str) -> str:
        return "machine" if nodeid.startswith(_OF_THE_MACHINE) else nodeid.partition("::")[0]
