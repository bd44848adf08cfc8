"""Nodes of a cluster for tests, large unless a test says otherwise."""

from collections.abc import Mapping

from kvtier_operator.planning.base.node import Node, Taint

GIB = 1 << 30


def node(  # noqa: PLR0913 - a node has that many sides, each with a default
    name: str = "node-a",
    *,
    allocatable: Mapping[str, int] | None = None,
    labels: Mapping[str, str] | None = None,
    taints: tuple[Taint, ...] = (),
    ready: bool = True,
    schedulable: bool = True,
) -> Node:
    """A ready node: 8 GPUs, 1 TiB of memory, 256 GiB of 2 MiB pages, 8 TiB of disk; 0 takes one away."""
    large = {
        "cpu": 128_000,
        "memory": 1024 * GIB,
        "hugepages-2Mi": 256 * GIB,
        "ephemeral-storage": 8192 * GIB,
        "nvidia.com/gpu": 8,
        "pods": 110,
    }
    return Node(
        name=name,
        labels={"kubernetes.io/hostname": name, **(labels or {})},
        taints=taints,
        allocatable={**large, **(allocatable or {})},
        ready=ready,
        schedulable=schedulable,
    )
