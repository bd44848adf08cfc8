"""What a node lacks for one more engine, and what a person can do about it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kvtier_operator.api.quantity import parse_bytes
from kvtier_operator.planning.cluster.nodes.node import CPU
from kvtier_operator.planning.cluster.nodes.pod_needs import ONE_PER_NODE, PODS
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.pod.devices import named_devices
from kvtier_operator.planning.pod.storage import EPHEMERAL_STORAGE, without_weights
from kvtier_operator.planning.units import GIB, MIB, ceil_div, count, many, size

_MEMORY: Final = "memory"
_STORAGE: Final = EPHEMERAL_STORAGE
_BYTES: Final = frozenset({_MEMORY, _STORAGE, "storage"})
_HUGEPAGES: Final = "hugepages-"
_PAGE_BYTES: Final = {"hugepages-2Mi": 2 * MIB, "hugepages-1Gi": GIB}
_MILLI: Final = 1000


@dataclass(frozen=True, slots=True)
class Shortage:
    """One resource of which a node has too little left for one more engine.

    Attributes:
        resource: Its name, as in a pod's requests.
        needed: What one engine requests of it.
        left: What the node has left of it beside the engines that it holds.
        held: Engines that the node holds.
    """

    resource: str
    needed: int
    left: int
    held: int

    @property
    def missing(self) -> int:
        """How much more the node would need."""
        return self.needed - self.left

    @property
    def reason(self) -> str:
        """A condition's reason, such as `InsufficientHugepages`."""
        return next((reason for applies, reason, _ in _KINDS if applies(self.resource)), _OTHER)

    def __str__(self) -> str:
        if self.resource == ONE_PER_NODE:
            return "holds the one engine that the pods' required anti-affinity allows a node"
        where = f"left beside {many(self.held, 'engine')}" if self.held else "allocatable"
        left, needed = amount(self.resource, self.left), amount(self.resource, self.needed)
        return f"has {left} of {self.resource} {where}, {needed} needed"

    def advice(self, plan: Plan) -> tuple[str, ...]:
        """What a person can do of whose engines these are, each a way of its own."""
        advise = next((advise for applies, _, advise in _KINDS if applies(self.resource)), _offer)
        return advise(self, plan)


def shortages(needs: Mapping[str, int], available: Mapping[str, int], held: int) -> tuple[Shortage, ...]:
    """What is too little for one more engine where `held` are counted already, what is scarcest first.

    Args:
        needs: Requests of one engine.
        available: What the node has of each resource before the first engine.
        held: Engines counted on the node.
    """
    found = (
        Shortage(name, needed, available.get(name, 0) - held * needed, held) for name, needed in needs.items()
    )
    return tuple(
        sorted(
            (each for each in found if each.missing > 0),
            key=lambda each: (_rank(each.resource), each.resource),
        )
    )


def amount(resource: str, number: int) -> str:
    """So much of a resource, for a reader."""
    if resource in _BYTES or resource.startswith(_HUGEPAGES):
        return size(number)
    if resource == CPU:
        return count(number // _MILLI) if number % _MILLI == 0 else f"{number}m"
    return count(number)


def _reserve(short: Shortage, plan: Plan) -> tuple[str, ...]:
    del plan
    page_bytes = _PAGE_BYTES.get(short.resource)
    if page_bytes is None:
        return (f"reserve {size(short.missing)} more of {short.resource} there",)
    pages = f"{many(ceil_div(short.missing, page_bytes), 'more page')} of {size(page_bytes)}"
    return f"reserve {pages} there (nr_hugepages, then restart its kubelet)", "lower spec.tiers.cpu.capacity"


def _lower_memory(short: Shortage, plan: Plan) -> tuple[str, ...]:
    """The tier, where it is in ordinary memory and large enough to make the difference."""
    larger = "use nodes with more memory"
    if plan.tiers.cpu.hugepages is not None or short.missing >= plan.tiers.cpu.capacity_bytes:
        return (larger,)
    return f"lower spec.tiers.cpu.capacity by {size(short.missing)}", larger


def _lower_storage(short: Shortage, plan: Plan) -> tuple[str, ...]:
    """Of all that is counted what is large enough."""
    ways = []
    resources = plan.resource.spec.engine.resources
    for where, given in (("requests", resources.requests), ("limits", resources.limits)):
        if _STORAGE in given and short.missing < parse_bytes(given[_STORAGE]):
            ways.append(f"lower spec.engine.resources.{where}.{_STORAGE} by {size(short.missing)}")
    if any("emptyDir" in mount.source for mount in plan.engine.mounts):
        if plan.tiers.disk is not None and short.missing < plan.tiers.disk.capacity_bytes:
            ways.append(f"lower spec.tiers.disk.capacity by {size(short.missing)}")
        ways.append("use another spec.tiers.disk.volume than emptyDir")
    if without_weights(plan.budget.storage) != plan.budget.storage:
        ways.append(another_volume(plan))
    return (*ways, "use nodes with a larger disk")


def another_volume(plan: Plan) -> str:
    """What to do about weights that take too much of the node's disk: their size is the model's."""
    if plan.weights and "image" in plan.weights.source:
        return "take the weights from a claim: pvc://CLAIM in spec.model.source"
    return "keep the weights on another spec.model.volume than emptyDir"


def _lower_cpu(short: Shortage, plan: Plan) -> tuple[str, ...]:
    resources = plan.resource.spec.engine.resources
    where = "requests" if CPU in resources.requests else "limits"
    return (f"lower spec.engine.resources.{where}.cpu by {amount(CPU, short.missing)}",)


def _more_pods(short: Shortage, plan: Plan) -> tuple[str, ...]:
    del short, plan
    return ("raise its kubelet's maxPods",)


def _loosen(short: Shortage, plan: Plan) -> tuple[str, ...]:
    del short, plan
    return ("loosen spec.engine.affinity.podAntiAffinity",)


def _offer(short: Shortage, plan: Plan) -> tuple[str, ...]:
    """GPUs and other devices: a node that has none at all may lack only the device plugin."""
    if not short.left and not short.held:
        return (f"see that {short.resource}'s device plugin runs there",)
    engine, larger = plan.resource.spec.engine, "use nodes with more of them"
    if short.resource in named_devices(plan.resource.spec):
        return f"ask for fewer {short.resource} in spec.engine.resources", larger
    sizes = {"tensorParallelSize": engine.tensor_parallel_size, "dataParallelSize": engine.data_parallel_size}
    several = [f"spec.engine.{name}" for name, ranks in sizes.items() if ranks > 1]
    return (*((f"lower {' or '.join(several)}",) if several else ()), larger)


_OTHER: Final = "InsufficientDevices"
_KINDS: Final[tuple[tuple[Callable[[str], bool], str, Callable[[Shortage, Plan], tuple[str, ...]]], ...]] = (
    (lambda name: name.startswith(_HUGEPAGES), "InsufficientHugepages", _reserve),
    (lambda name: "gpu" in name, "InsufficientGPUs", _offer),
    (lambda name: name == _MEMORY, "InsufficientMemory", _lower_memory),
    (lambda name: name == _STORAGE, "InsufficientEphemeralStorage", _lower_storage),
    (lambda name: name == CPU, "InsufficientCPU", _lower_cpu),
    (lambda name: name == PODS, "TooManyPods", _more_pods),
    (lambda name: name == ONE_PER_NODE, "AntiAffinity", _loosen),
)
"""Which resources, their reason and what to do; in the order in which they are named first."""


def _rank(resource: str) -> int:
    return next((rank for rank, (applies, _, _) in enumerate(_KINDS) if applies(resource)), len(_KINDS))
