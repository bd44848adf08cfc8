"""The NUMA nodes of this machine, and the cores that a thread of ours runs on.

Memory gets to a node by being touched first on one of its CPUs. That needs no right, while mbind(2) and
set_mempolicy(2) need CAP_SYS_NICE under the usual seccomp profiles of containers, and it leaves a policy that
someone set with numactl in force.
"""

import os
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path
from typing import Final

_NODES: Final = Path("/sys/devices/system/node")
_DEVICES: Final = Path("/sys/bus/pci/devices")


def node_of_pci(domain: int, bus: int, device: int, devices: Path = _DEVICES) -> int | None:
    """Return the node of a PCI device (CUDA: pciDomainID etc.), or None where the firmware does not say."""
    try:
        node = int((devices / f"{domain:04x}:{bus:02x}:{device:02x}.0/numa_node").read_text())
    except OSError:
        return None
    return node if node >= 0 else None


def node_of_cpus(cpus: AbstractSet[int], nodes: Path = _NODES) -> int | None:
    """Return the node that has all of these CPUs, or None if they are of several nodes or of none."""
    for folder in sorted(nodes.glob("node[0-9]*")):
        node = int(folder.name.removeprefix("node"))
        if cpus and cpus <= cpus_of_node(node, nodes):
            return node
    return None


def cpus_of_node(node: int, nodes: Path = _NODES) -> frozenset[int]:
    """Return the CPUs of a node; none if there is no such node or it has only memory."""
    try:
        return frozenset(_numbers_in((nodes / f"node{node}" / "cpulist").read_text()))
    except OSError:
        return frozenset()


def _numbers_in(cpulist: str) -> Iterator[int]:
    """Yield the numbers in a list such as 0-3,8."""
    for part in filter(None, cpulist.strip().split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def use_every_core() -> None:
    """Let the calling thread run on all cores that the process computes on.

    vLLM binds each of its computing threads to one core, and a thread inherits that of the one that made it.
    """
    cores: set[int] = set()
    for thread in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError):  # it ended just now
            cores |= os.sched_getaffinity(int(thread.name))
    os.sched_setaffinity(0, cores)
