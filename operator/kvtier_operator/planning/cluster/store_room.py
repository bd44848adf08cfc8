"""Where the pod of a store that is made finds room, and what that leaves to engines."""

from collections.abc import Sequence
from dataclasses import replace

from kvtier_operator.planning.base.node import CPU, Node
from kvtier_operator.planning.cluster.pod_needs import PodNeeds, mismatch, pod_needs
from kvtier_operator.planning.cluster.shortage import MatchingNode, Shortage, alternatives, closest, why_away
from kvtier_operator.planning.objects.store import store_deployment
from kvtier_operator.planning.plan import Plan


def place_store(plan: Plan, nodes: Sequence[Node], engine: PodNeeds) -> tuple[Sequence[Node], str]:
    """Put the store where that costs the fewest engines.

    Args:
        plan: The Plan, perhaps without such a store.
        nodes: All nodes of the cluster.
        engine: What an engine's pod needs.

    Returns:
        The nodes less what the store takes, and why no node holds it; empty where one does, or none need.
    """
    deployment = store_deployment(plan)
    if deployment is None or not nodes:
        return nodes, ""
    needs = pod_needs(deployment["spec"]["template"])
    faults = [(node, mismatch(node, needs)) for node in nodes]
    taking = [node for node, fault in faults if fault is None]
    if not taking:
        away = why_away([fault for _, fault in faults if fault is not None])
        # it runs where the picker runs
        return nodes, f"No node takes the store: {away.replace('spec.engine.', 'spec.router.')}"
    rooms = [MatchingNode.of(node, needs) for node in taking]
    places = [node for node, room in zip(taking, rooms, strict=True) if room.holds]
    if not places:
        lack, *_ = closest(rooms, needs)
        ways = alternatives(_advice(lack, plan))
        return nodes, f"No node has room for the store: the closest {lack}. {ways}"
    place = min(places, key=lambda node: (_lost_engines(node, needs, engine), node.name))
    return [_less(node, needs) if node is place else node for node in nodes], ""


def _less(node: Node, needs: PodNeeds) -> Node:
    """What is left of a node."""
    taken = needs.requests
    left = {name: number - taken.get(name, 0) for name, number in node.allocatable.items()}
    return replace(node, allocatable=left)


def _lost_engines(node: Node, store: PodNeeds, engine: PodNeeds) -> int:
    if mismatch(node, engine) is not None:
        return 0
    return MatchingNode.of(node, engine).holds - MatchingNode.of(_less(node, store), engine).holds


def _advice(lack: Shortage, plan: Plan) -> tuple[str, ...]:
    if lack.resource == CPU:
        return ("use nodes with more cores",)
    remote = plan.resource.spec.tiers.remote
    if lack.resource != "memory" or remote is None or remote.managed is None:
        return ("use other nodes",)
    memory = " and spec.tiers.remote.managed.memory" if remote.managed.memory else ""
    return f"lower spec.tiers.remote.capacity{memory}", "use nodes with more memory"
