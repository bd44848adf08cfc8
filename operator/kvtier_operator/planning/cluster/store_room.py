"""Where the pods of a store that is made find room, and what that leaves to engines."""

from collections.abc import Sequence
from dataclasses import replace

from kvtier_operator.planning.base.node import CPU, Node
from kvtier_operator.planning.cluster.pod_needs import PodNeeds, mismatch, pod_needs
from kvtier_operator.planning.cluster.shortage import MatchingNode, Shortage, alternatives, closest, why_away
from kvtier_operator.planning.objects.store import store_deployment
from kvtier_operator.planning.plan import Plan


def place_store(plan: Plan, nodes: Sequence[Node], engine: PodNeeds) -> tuple[Sequence[Node], str]:
    """Put each of the store's servers where that costs the fewest engines.

    Args:
        plan: The Plan, perhaps without such a store.
        nodes: All nodes of the cluster.
        engine: What an engine's pod needs.

    Returns:
        The nodes less what the store takes, and why no node holds it; empty where one does, or none need.
    """
    deployment = store_deployment(plan)
    if deployment is None or plan.store is None or not nodes:
        return nodes, ""
    needs = pod_needs(deployment["spec"]["template"])
    faults = [mismatch(node, needs) for node in nodes]
    left = {place: node for place, node in enumerate(nodes) if faults[place] is None}
    if not left:
        away = why_away([fault for fault in faults if fault is not None])
        # it runs where the picker runs
        return nodes, f"No node takes the store: {away.replace('spec.engine.', 'spec.router.')}"
    costs = {place: _lost_engines(node, needs, engine) for place, node in left.items()}
    for number in range(plan.store.shards):
        rooms = {place: cost for place, cost in costs.items() if cost is not None}
        if not rooms:
            lack, *_ = closest([MatchingNode.of(node, needs) for node in left.values()], needs)
            which = (
                "the store"
                if plan.store.shards == 1
                else f"{number + 1} of the store's {plan.store.shards} shards"
            )
            ways = alternatives(_advice(lack, plan))
            return nodes, f"No node has room for {which}: the closest {lack}. {ways}"
        place = min(rooms, key=lambda place: (rooms[place], left[place].name))
        left[place] = _less(left[place], needs)
        costs[place] = _lost_engines(left[place], needs, engine)
    return [left.get(place, node) for place, node in enumerate(nodes)], ""


def _less(node: Node, needs: PodNeeds) -> Node:
    """What is left of a node."""
    taken = needs.requests
    left = {name: number - taken.get(name, 0) for name, number in node.allocatable.items()}
    return replace(node, allocatable=left)


def _lost_engines(node: Node, store: PodNeeds, engine: PodNeeds) -> int | None:
    """How many engines have no room beside one of the store's servers; None where that has none itself."""
    if not MatchingNode.of(node, store).holds:
        return None
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
    return (
        f"lower spec.tiers.remote.capacity{memory}",
        "raise spec.tiers.remote.managed.shards",
        "use nodes with more memory",
    )
