"""What a node lacks for one more pod, and what a person can do about it."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from kvtier_operator.api.quantity import parse_bytes
from kvtier_operator.api.spec.tiers import one_of
from kvtier_operator.api.spec.tiers.cpu import HugepageSize
from kvtier_operator.planning.base.devices import named_devices
from kvtier_operator.planning.base.node import CPU, Node
from kvtier_operator.planning.cluster.pod_needs import ONE_PER_NODE, PODS, Mismatch, PodNeeds
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.pod.budget import EPHEMERAL_STORAGE, without_weights
from kvtier_operator.planning.units import ceil_div, count, many, size

_MEMORY: Final = "memory"
_BYTES: Final = frozenset({_MEMORY, EPHEMERAL_STORAGE, "storage"})
_HUGEPAGES: Final = "hugepages-"
_PAGE_BYTES: Final = {f"{_HUGEPAGES}{page}": page.bytes for page in HugepageSize}
_MILLI: Final = 1000
_NAMED_REASONS: Final = 3


@dataclass(frozen=True, slots=True)
class Shortage:
    """One resource of which a node has too little left for one more engine."""

    resource: str  # its name, as in a pod's requests
    needed: int  # what one engine requests of it
    left: int  # what the node has left of it beside the engines that it holds
    held: int  # engines that the node holds
    # of huge pages: those that the node's kernel has where this is no size of it
    instead: tuple[str, ...] = ()

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


def _shortages(needs: Mapping[str, int], available: Mapping[str, int], held: int) -> tuple[Shortage, ...]:
    """What is too little for one more engine where `held` are counted already, what is scarcest first.

    Args:
        needs: Requests of one engine.
        available: What the node has of each resource before the first engine.
        held: Engines counted on the node.
    """
    resources = (
        Shortage(name, needed, available.get(name, 0) - held * needed, held, _other_pages(name, available))
        for name, needed in needs.items()
    )
    short = (resource for resource in resources if resource.missing > 0)
    return tuple(sorted(short, key=lambda shortage: (_rank(shortage.resource), shortage.resource)))


def _other_pages(name: str, available: Mapping[str, int]) -> tuple[str, ...]:
    """A kubelet names every size that its kernel has, those too of which nothing is reserved."""
    if not name.startswith(_HUGEPAGES) or name in available:
        return ()
    return tuple(other for other in _PAGE_BYTES if other in available)


def amount(resource: str, number: int) -> str:
    """So much of a resource, for a reader."""
    if resource in _BYTES or resource.startswith(_HUGEPAGES):
        return size(number)
    if resource == CPU:
        return count(number // _MILLI) if number % _MILLI == 0 else f"{number}m"
    return count(number)


def _reserve(short: Shortage, plan: Plan) -> tuple[str, ...]:
    del plan
    if short.instead:
        sizes = one_of(name.removeprefix(_HUGEPAGES) for name in short.instead)
        return (f"set spec.tiers.cpu.hugepages.pageSize to {sizes}, which its kernel has",)
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
    for where, amounts in (("requests", resources.requests), ("limits", resources.limits)):
        if EPHEMERAL_STORAGE in amounts and short.missing < parse_bytes(amounts[EPHEMERAL_STORAGE]):
            ways.append(f"lower spec.engine.resources.{where}.{EPHEMERAL_STORAGE} by {size(short.missing)}")
    if any("emptyDir" in mount.source for mount in plan.engine.mounts):
        if plan.tiers.disk is not None and short.missing < plan.tiers.disk.capacity_bytes:
            ways.append(f"lower spec.tiers.disk.capacity by {size(short.missing)}")
        ways.append("use another spec.tiers.disk.volume than emptyDir")
    if without_weights(plan.budget.storage) != plan.budget.storage:
        ways.append(_another_volume(plan))
    return (*ways, "use nodes with a larger disk")


def _another_volume(plan: Plan) -> str:
    """What to do about weights that take too much of the node's disk: their size is the model's."""
    if plan.weights and "image" in plan.weights.source:
        return "take the weights from a claim: pvc://CLAIM in spec.model.source"
    return "keep the weights on another spec.model.volume than emptyDir"


def _lower_cpu(short: Shortage, plan: Plan) -> tuple[str, ...]:
    resources = plan.resource.spec.engine.resources
    if CPU not in {**resources.requests, **resources.limits}:
        return (
            f"set spec.engine.resources.requests.cpu to less than the planned {amount(CPU, short.needed)}",
        )
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
    (lambda name: name == EPHEMERAL_STORAGE, "InsufficientEphemeralStorage", _lower_storage),
    (lambda name: name == CPU, "InsufficientCPU", _lower_cpu),
    (lambda name: name == PODS, "TooManyPods", _more_pods),
    (lambda name: name == ONE_PER_NODE, "AntiAffinity", _loosen),
)
"""Which resources, their reason and what to do; in the order in which they are named first."""


def _rank(resource: str) -> int:
    return next((rank for rank, (applies, _, _) in enumerate(_KINDS) if applies(resource)), len(_KINDS))


@dataclass(frozen=True, slots=True)
class MatchingNode:
    """What a node that takes the pod has, and how many engines that holds."""

    name: str
    available: Mapping[str, int]
    holds: int

    @classmethod
    def of(cls, node: Node, needs: PodNeeds) -> Self:
        """How many of a pod a node holds."""
        available = {**node.allocatable, ONE_PER_NODE: 1}
        holds = min(available.get(name, 0) // needed for name, needed in needs.requests.items())
        return cls(node.name, available, holds)


def closest(nodes: Iterable[MatchingNode], needs: PodNeeds) -> tuple[Shortage, ...]:
    """What the node lacks that is closest to holding one more engine."""

    def distance(named: tuple[str, tuple[Shortage, ...]]) -> tuple[int, float, str]:
        """Resources that lack, and their missing shares together."""
        name, lacks = named
        return len(lacks), sum(lack.missing / lack.needed for lack in lacks), name

    lacks = ((node.name, _shortages(needs.requests, node.available, node.holds)) for node in nodes)
    return min(lacks, key=distance)[1]


def alternatives(ways: Sequence[str]) -> str:
    """Each as a way of its own, in a sentence."""
    *first, last = ways
    text = f"{', '.join(first)} or {last}" if first else last
    return text[0].upper() + text[1:]


def why_away(away: Sequence[Mismatch]) -> str:
    """Nodes by what keeps the pod from them, the most frequent first, each with the field to look at."""
    kinds = Counter(away)
    texts = []
    for fault, number in sorted(kinds.items(), key=lambda kind: (-kind[1], kind[0].what)):
        field = f" (see {fault.cause})" if fault.cause else ""
        texts.append(f"{number} {fault.what}{field}")
    rest = len(texts) - _NAMED_REASONS
    return ", ".join(texts[:_NAMED_REASONS]) + (f" and {many(rest, 'other reason')}" if rest > 0 else "")
