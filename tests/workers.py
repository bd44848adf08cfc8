"""Which tests stay together on one of pytest-xdist's workers."""

from typing import Final

from xdist.scheduler import LoadScopeScheduling

_OF_THE_MACHINE: Final = (
    "tests/cluster/node/",
    "tests/cluster/scale/",
    "tests/cluster/standing/",
    "tests/node/",
    "tests/engine/connector/test_bench_disk.py",
    "tests/engine/connector/test_bench_gpu.py",
    "tests/engine/connector/test_bench_workloads.py",
    "tests/engine/connector/test_two_ranks.py",
    "tests/engine/runtime/",
    "tests/unit/connector/test_bench_disk.py",
    "tests/unit/connector/test_bench_region.py",
    "tests/unit/connector/test_numa.py",
    "tests/unit/connector/test_pin.py",
    "tests/unit/connector/test_region.py",
)
"""Tests that reserve or take huge pages, of which the machine has one pool, that start nodes, look for what
is left of processes, or need both cores for minutes: one worker runs these, one after the other."""
_OF_A_CLUSTER: Final = "tests/cluster/"
"""All others here share clusters that have no nodes of their own, which take a while to start."""


class TogetherByFile(LoadScopeScheduling):  # type: ignore[misc] # pytest-xdist has no types
    """Gives a worker all tests of a file at once, or all that are the machine's, or all of a cluster."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(_OF_THE_MACHINE):
            return "machine"
        return _OF_A_CLUSTER if nodeid.startswith(_OF_A_CLUSTER) else nodeid.partition("::")[0]
