"""How much CPU tier the engines of one node may have, by what each engine's pod needs beside it."""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from kvtier_operator.api.quantity import ByteQuantity
from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.api.spec.gpu import USUAL_NODE_GPUS
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.base.devices import engine_devices, is_accelerator, is_part_of_a_gpu
from kvtier_operator.planning.cluster.pod_needs import pod_needs
from kvtier_operator.planning.objects.engine.deployment import engine_deployment
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.units import GIB, KIB, ceil_div, each_of, many, quantity, size

_PAGE_BYTES: Final = 4 * KIB
_PAGE_RECORD_BYTES: Final = 64
"""The kernel's record of a page (struct page)."""
_KUBELET_SHARES: Final = ((4, 25), (4, 20), (8, 10), (112, 6))
"""GiB of a node, and the percentage of them that is kept back; 2 % of what is beyond.

Source: GKE's formula for the memory that pods cannot have.
"""
_KUBELET_REST_PERCENT: Final = 2
_OTHER_PODS_BYTES: Final = GIB
"""DaemonSets of a GPU node: device plugin, network, logs, metrics; an allowance."""


@dataclass(frozen=True, slots=True)
class NodeSize:
    """A node as it is bought."""

    memory_bytes: int
    # parts of GPUs where engines take those; None for as many as a usual node has of the resource's GPU
    gpus: int | None = None


@dataclass(frozen=True, slots=True)
class NodeShare:
    """What one node's engines may have each."""

    gpus: int  # of the node
    memory_bytes: int  # of the node
    reserve_bytes: int  # of it, what is no engine's
    engines: int  # that the node's GPUs are enough for
    largest_bytes: int  # the largest CPU tier with which memory is enough for all of them, in whole GiB
    capacity_bytes: int  # the resource's own CPU tier
    fitting: int  # engines with that one, by memory and GPUs

    def at_largest(self) -> "NodeShare":
        """The same of a resource that has the largest CPU tier."""
        return replace(self, capacity_bytes=self.largest_bytes, fitting=self.engines)

    def fields(self) -> dict[str, int | str]:
        """As data: the names are part of kvtier's command line and do not change."""
        return {
            "gpus": self.gpus,
            "memoryBytes": self.memory_bytes,
            "reserveBytes": self.reserve_bytes,
            "engines": self.engines,
            "largestCpuCapacity": quantity(self.largest_bytes),
            "fitting": self.fitting,
        }

    def __str__(self) -> str:
        """In a line."""
        node = f"{many(self.gpus, 'GPU')} and {size(self.memory_bytes)}"
        largest = f"spec.tiers.cpu.capacity {quantity(self.largest_bytes)}"
        engines = f"{many(self.engines, 'engine')} with {largest} at most"
        engines += " each" if self.engines > 1 else ""
        kept = f"{size(self.reserve_bytes)} are left to kernel, kubelet and other pods"
        if self.capacity_bytes == self.largest_bytes:
            return f"{node}: {engines}, as planned here; {kept}"
        fit = "none fits" if not self.fitting else f"{self.fitting} of {self.engines} fit"
        planned = f"with {size(self.capacity_bytes)} as planned here, {fit}"
        return f"{node}: {engines}; {planned}; {kept}"


def node_reserve_bytes(memory_bytes: int) -> int:
    """Memory of a node that no engine gets: the kernel's own, the kubelet's and system's, other pods'."""
    kernel = ceil_div(memory_bytes, _PAGE_BYTES) * _PAGE_RECORD_BYTES
    kept, left = 0, memory_bytes
    for gib, percent in _KUBELET_SHARES:
        part = min(left, gib * GIB)
        kept += part * percent // 100
        left -= part
    return kernel + kept + left * _KUBELET_REST_PERCENT // 100 + _OTHER_PODS_BYTES


def share_node(resource: KVCacheTier, observed: Observed, node: NodeSize) -> NodeShare:
    """The largest CPU tier with which as many engines fit on a node as its GPUs are enough for.

    Raises:
        InvalidInputError: Not even one engine fits, or not with a CPU tier of 1 GiB each.
    """
    engine = resource.spec.engine
    parts = [name for name in engine_devices(resource.spec) if is_part_of_a_gpu(name)]
    if parts and node.gpus is None:
        message = f"{parts[0]} is a part of a GPU: say by --node-gpus how many of them the node has"
        raise InvalidInputError("", Problem("spec.engine.resources", message))
    gpus = node.gpus or (engine.gpu.node_gpus if engine.gpu else USUAL_NODE_GPUS)
    engine_gpus = _gpus(resource)
    engines = gpus // engine_gpus if engine_gpus else 1
    if not engines:
        message = (
            f"an engine takes {many(engine_gpus, 'GPU')}, and the node has {gpus}; lower tensorParallelSize"
        )
        raise InvalidInputError("", Problem("spec.engine.tensorParallelSize", message))
    reserve = node_reserve_bytes(node.memory_bytes)
    room = (node.memory_bytes - reserve) // engines
    largest = bisect_right(
        range(1, max(room, 0) // GIB + 1), room, key=lambda gib: _needed_bytes(resource, observed, gib * GIB)
    )
    if not largest:
        needed = _needed_bytes(resource, observed, GIB)
        message = (
            f"{many(gpus, 'GPU')} and {size(node.memory_bytes)} leave {size(max(room, 0))} of memory to "
            f"{each_of(engines, 'engine')}, which needs {size(needed)} with a tier of 1 GiB; take a node "
            "with more memory, or fewer of its GPUs"
        )
        raise InvalidInputError("", Problem("spec.tiers.cpu.capacity", message))
    capacity = resource.spec.tiers.cpu.capacity.bytes
    fitting = (node.memory_bytes - reserve) // _needed_bytes(resource, observed, capacity)
    return NodeShare(
        gpus, node.memory_bytes, reserve, engines, largest * GIB, capacity, min(fitting, engines)
    )


def with_cpu_tier(resource: KVCacheTier, capacity_bytes: int) -> KVCacheTier:
    """The resource with another CPU tier."""
    spec = resource.spec
    cpu = spec.tiers.cpu.model_copy(update={"capacity": ByteQuantity(quantity(capacity_bytes))})
    tiers = spec.tiers.model_copy(update={"cpu": cpu})
    return resource.model_copy(update={"spec": spec.model_copy(update={"tiers": tiers})})


def _needed_bytes(resource: KVCacheTier, observed: Observed, capacity_bytes: int) -> int:
    """Memory of the node that one engine's pod takes with such a tier, huge pages included."""
    plan = make_plan(with_cpu_tier(resource, capacity_bytes), observed)
    return _memory_of(pod_needs(engine_deployment(plan)["spec"]["template"]).requests)


def _memory_of(requests: Mapping[str, int]) -> int:
    return sum(
        amount for name, amount in requests.items() if name == "memory" or name.startswith("hugepages-")
    )


def _gpus(resource: KVCacheTier) -> int:
    """GPUs that one pod takes; of claims, which nobody can count, one a rank."""
    spec = resource.spec
    requested = sum(int(number) for name, number in engine_devices(spec).items() if is_accelerator(name))
    return requested or (spec.engine.ranks if spec.engine.resource_claims else 0)
