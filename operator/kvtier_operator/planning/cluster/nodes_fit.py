"""How many of a Plan's engines the nodes of a cluster can hold, and what the others lack."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kvtier_operator.api.resource import Spec
from kvtier_operator.planning.base.devices import is_device
from kvtier_operator.planning.base.node import Node
from kvtier_operator.planning.cluster.pod_needs import (
    Mismatch,
    PodNeeds,
    mismatch,
    pod_needs,
)
from kvtier_operator.planning.cluster.shortage import MatchingNode, alternatives, amount, closest, why_away
from kvtier_operator.planning.cluster.store_room import place_store
from kvtier_operator.planning.objects.engine.deployment import engine_deployment
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.pod.budget import EPHEMERAL_STORAGE
from kvtier_operator.planning.units import many

_MEMORY: Final = "memory"
_HUGEPAGES: Final = "hugepages-"
_IN_SUMMARY: Final[tuple[Callable[[str], bool], ...]] = (
    is_device,
    lambda name: name == _MEMORY,
    lambda name: name.startswith(_HUGEPAGES),
    lambda name: name == EPHEMERAL_STORAGE,
)


@dataclass(frozen=True, slots=True)
class NodesFit:
    """Whether the nodes can hold all replicas.

    What other pods take of the nodes is not counted: the scheduler has the last word.
    """

    # whether as many replicas fit as the resource asks for, with an autoscaler the least of them, and the one
    # more that a rollout may add
    fits: bool
    matching_nodes: int  # nodes that take an engine's pod, whatever its size
    fitting_nodes: int  # those of them that hold at least one
    replicas_that_fit: int  # engines that they hold together
    reason: str  # CamelCase, as in a condition
    # one line with the numbers and, where they do not fit, what is missing and what to do. Who reads a
    # resource need not know the cluster: it names no node, and no label or taint of one
    message: str


def nodes_fit(plan: Plan, nodes: Sequence[Node]) -> NodesFit:
    """How many replicas of the Plan's engine pod the nodes can hold, beside a store that is made for them.

    Args:
        plan: The Plan; what counts is the pod that its Deployment makes.
        nodes: All nodes of the cluster.
    """
    needs = pod_needs(engine_deployment(plan)["spec"]["template"])
    wanted = _pods_wanted(plan.resource.spec)
    left, no_room = place_store(plan, nodes, needs)
    faults = [(node, mismatch(node, needs)) for node in left]
    matching = [MatchingNode.of(node, needs) for node, fault in faults if fault is None]
    away = [fault for _, fault in faults if fault is not None]
    total = sum(node.holds for node in matching)
    reason, message = _verdict(plan, needs, matching, away)
    if no_room:
        reason, message = reason if total < wanted else "NoRoomForStore", f"{message}. {no_room}"
    return NodesFit(
        fits=total >= wanted and not no_room,
        matching_nodes=len(matching),
        fitting_nodes=sum(node.holds > 0 for node in matching),
        replicas_that_fit=total,
        reason=reason,
        message=message,
    )


def _pods_wanted(spec: Spec) -> int:
    """Replicas that there always are, and the one more while they are replaced."""
    return spec.least_replicas and spec.least_replicas + spec.engine.rollout.surplus_pods


def _verdict(
    plan: Plan, needs: PodNeeds, matching: Sequence[MatchingNode], away: Sequence[Mismatch]
) -> tuple[str, str]:
    """Reason and message."""
    spec = plan.resource.spec
    least, most, wanted = spec.least_replicas, spec.most_replicas, _pods_wanted(spec)
    total, seen = sum(node.holds for node in matching), len(matching) + len(away)
    beside = " beside the store" if plan.store else ""
    numbers = (
        f"room for {many(total, 'engine')}{beside}, "
        f"{least if least == most else f'{least} to {most}'} wanted"
        f"{' and one more in a rollout' if wanted > least else ''} "
        f"(nodes: {seen}, matching {len(matching)}, with room {sum(node.holds > 0 for node in matching)})"
    )
    claims = _claims(plan)
    if total >= wanted:
        takes = f"one takes {_summary(needs)}; other pods are not counted"
        more = f"; beyond {total} the autoscaler needs more nodes" if total < spec.most_pods else ""
        return "EnoughNodes", f"{numbers}{more}; {takes}{f'. {claims}' if claims else ''}"
    if not seen:
        return "NoNodes", f"{numbers}; add nodes to the cluster"
    if not matching:
        return "NoMatchingNodes", f"{numbers}. Not matching: {why_away(away)}"
    lack, *others = closest(matching, needs)
    fewer = total - spec.engine.rollout.surplus_pods
    in_place = ("set spec.engine.rollout.strategy to InPlace",) if least <= total < wanted else ()
    lower = (f"lower {spec.least_replicas_field} to {fewer}",) if fewer > 0 else ()
    too = f"; it also lacks {', '.join(other.resource for other in others)}" if others else ""
    sentences = [
        numbers,
        f"The node closest to holding one more {lack}{too}",
        alternatives((*in_place, *lack.advice(plan), *lower, "add nodes")),
    ]
    if away:
        sentences.append(f"Not matching: {why_away(away)}")
    if claims:
        sentences.append(claims)
    return lack.reason, ". ".join(sentences)


def _claims(plan: Plan) -> str:
    """What of the pod's devices only the scheduler can allocate; empty where there is nothing."""
    names = ", ".join(claim.name for claim in plan.resource.spec.engine.resource_claims)
    return (
        f"Devices claimed by resourceClaims ({names}) cannot be counted: the scheduler allocates them"
        if names
        else ""
    )


def _summary(needs: PodNeeds) -> str:
    """The requests that tiers and devices make, such as `2 nvidia.com/gpu, 131 GiB memory`."""
    return ", ".join(
        f"{amount(name, needed)} {name}"
        for is_shown in _IN_SUMMARY
        for name, needed in needs.requests.items()
        if is_shown(name)
    )
