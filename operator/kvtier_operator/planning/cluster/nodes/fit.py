"""How many of a Plan's engines the nodes of a cluster can hold, and what the others lack."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from kvtier_operator.planning.base.devices import is_device
from kvtier_operator.planning.base.node import Node
from kvtier_operator.planning.cluster.nodes.matching import Mismatch, mismatch
from kvtier_operator.planning.cluster.nodes.pod_needs import ONE_PER_NODE, PodNeeds, pod_needs
from kvtier_operator.planning.cluster.nodes.shortage import Shortage, amount, shortages
from kvtier_operator.planning.objects.engine.deployment import engine_deployment
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.pod.budget import EPHEMERAL_STORAGE
from kvtier_operator.planning.units import many

_NAMED_REASONS: Final = 3
_IN_SUMMARY: Final[tuple[Callable[[str], bool], ...]] = (
    is_device,
    lambda name: name == "memory",
    lambda name: name.startswith("hugepages-"),
    lambda name: name == EPHEMERAL_STORAGE,
)


@dataclass(frozen=True, slots=True)
class NodesFit:
    """Whether the nodes can hold all replicas.

    What other pods take of the nodes is not counted: the scheduler has the last word.

    Attributes:
        fits: Whether as many replicas fit as the resource asks for; with an autoscaler the least of them.
        matching_nodes: Nodes that take an engine's pod, whatever its size.
        fitting_nodes: Those of them that hold at least one.
        replicas_that_fit: Engines that they hold together.
        reason: CamelCase, as in a condition.
        message: One line with the numbers and, where they do not fit, what is missing and what to do. Who
            reads a resource need not know the cluster: it names no node, and no label or taint of one.
    """

    fits: bool
    matching_nodes: int
    fitting_nodes: int
    replicas_that_fit: int
    reason: str
    message: str


def nodes_fit(plan: Plan, nodes: Sequence[Node]) -> NodesFit:
    """How many replicas of the Plan's engine pod the nodes can hold.

    Args:
        plan: The Plan; what counts is the pod that its Deployment makes.
        nodes: All nodes of the cluster.
    """
    needs = pod_needs(engine_deployment(plan)["spec"]["template"])
    wanted = plan.resource.spec.least_replicas
    faults = [(node, mismatch(node, needs)) for node in nodes]
    rooms = [_Room.of(node, needs) for node, fault in faults if fault is None]
    away = [fault for _, fault in faults if fault is not None]
    total = sum(room.holds for room in rooms)
    reason, message = _verdict(plan, needs, rooms, away)
    return NodesFit(
        fits=total >= wanted,
        matching_nodes=len(rooms),
        fitting_nodes=sum(room.holds > 0 for room in rooms),
        replicas_that_fit=total,
        reason=reason,
        message=message,
    )


@dataclass(frozen=True, slots=True)
class _Room:
    """What a matching node has, and how many engines that holds."""

    name: str
    available: Mapping[str, int]
    holds: int

    @classmethod
    def of(cls, node: Node, needs: PodNeeds) -> Self:
        available = {**node.allocatable, ONE_PER_NODE: 1}
        holds = min(available.get(name, 0) // needed for name, needed in needs.requests.items())
        return cls(node.name, available, holds)


@dataclass(frozen=True, slots=True)
class _Closest:
    """The matching node that is closest to holding one more engine, and what it lacks for that."""

    name: str
    lacks: tuple[Shortage, ...]

    @classmethod
    def of(cls, rooms: Sequence[_Room], needs: PodNeeds) -> Self:
        nodes = (cls(room.name, shortages(needs.requests, room.available, room.holds)) for room in rooms)
        return min(nodes, key=lambda node: node.distance)

    @property
    def distance(self) -> tuple[int, float, str]:
        """Resources that lack, and their missing shares together."""
        share = sum(each.missing / each.needed for each in self.lacks)
        return len(self.lacks), share, self.name


def _verdict(
    plan: Plan, needs: PodNeeds, rooms: Sequence[_Room], away: Sequence[Mismatch]
) -> tuple[str, str]:
    """Reason and message."""
    spec = plan.resource.spec
    wanted, most = spec.least_replicas, spec.most_replicas
    total, seen = sum(room.holds for room in rooms), len(rooms) + len(away)
    numbers = (
        f"room for {many(total, 'engine')}, {wanted if wanted == most else f'{wanted} to {most}'} wanted "
        f"(nodes: {seen}, matching {len(rooms)}, with room {sum(room.holds > 0 for room in rooms)})"
    )
    claimed = _claimed(plan)
    if total >= wanted:
        takes = f"one takes {_summary(needs)}; other pods are not counted"
        more = f"; beyond {total} the autoscaler needs more nodes" if total < most else ""
        return "EnoughNodes", f"{numbers}{more}; {takes}{f'. {claimed}' if claimed else ''}"
    if not seen:
        return "NoNodes", f"{numbers}; add nodes to the cluster"
    if not rooms:
        return "NoMatchingNodes", f"{numbers}. Not matching: {_why_away(away)}"
    closest = _Closest.of(rooms, needs)
    lack, *others = closest.lacks
    add = (f"lower {spec.least_replicas_field} to {total}",) if total else ()
    too = f"; it also lacks {', '.join(each.resource for each in others)}" if others else ""
    sentences = [
        numbers,
        f"The node closest to holding one more {lack}{too}",
        _alternatives((*lack.advice(plan), *add, "add nodes")),
    ]
    if away:
        sentences.append(f"Not matching: {_why_away(away)}")
    if claimed:
        sentences.append(claimed)
    return lack.reason, ". ".join(sentences)


def _claimed(plan: Plan) -> str:
    """What of the pod's devices only the scheduler can allocate; empty where there is nothing."""
    names = ", ".join(each.name for each in plan.resource.spec.engine.resource_claims)
    return (
        f"Devices claimed by resourceClaims ({names}) cannot be counted: the scheduler allocates them"
        if names
        else ""
    )


def _alternatives(ways: Sequence[str]) -> str:
    *first, last = ways
    text = f"{', '.join(first)} or {last}" if first else last
    return text[0].upper() + text[1:]


def _summary(needs: PodNeeds) -> str:
    """The requests that tiers and devices make, such as `2 nvidia.com/gpu, 131 GiB memory`."""
    return ", ".join(
        f"{amount(name, needed)} {name}"
        for is_shown in _IN_SUMMARY
        for name, needed in needs.requests.items()
        if is_shown(name)
    )


def _why_away(away: Sequence[Mismatch]) -> str:
    """Nodes by what keeps the pod from them, the most frequent first, each with the field to look at."""
    kinds = Counter(away)
    texts = []
    for fault, number in sorted(kinds.items(), key=lambda each: (-each[1], each[0].what)):
        field = f" (see {fault.cause})" if fault.cause else ""
        texts.append(f"{number} {fault.what}{field}")
    rest = len(texts) - _NAMED_REASONS
    return ", ".join(texts[:_NAMED_REASONS]) + (f" and {many(rest, 'other reason')}" if rest > 0 else "")
