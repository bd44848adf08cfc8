"""What one engine pod takes of a node, and what all pods of several plans take together."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kvtier_operator.planning.base.devices import is_device
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.pod.budget import storage_bytes
from kvtier_operator.planning.units import many, size

_MOST_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """What of a node's memory something of a pod takes."""

    what: str
    bytes: int


def memory_parts(plan: Plan) -> tuple[MemoryPart, ...]:
    """All that takes memory of the node: the engine's lines, containers beside it, explicit huge pages."""
    pages = plan.tiers.cpu.hugepages
    return (
        *(MemoryPart(line.what, line.bytes) for line in plan.budget.memory),
        *(MemoryPart(sidecar.name, sidecar.memory_bytes) for sidecar in plan.engine.sidecars),
        *([MemoryPart("huge pages", pages.bytes)] if pages else []),
    )


def memory_bytes(plan: Plan) -> int:
    """Memory of the node that one pod takes."""
    return sum(part.bytes for part in memory_parts(plan))


def devices(plan: Plan) -> dict[str, int]:
    """Devices that one pod asks for, by their names in requests; those of claims nobody can count."""
    both = {**plan.budget.requests, **plan.budget.limits}
    return {name: int(number) for name, number in both.items() if is_device(name)}


def together(plans: Sequence[Plan]) -> str:
    """What all pods of several plans take, in a line; of those that an autoscaler makes, the most."""
    pods = [(plan, plan.resource.spec.most_replicas) for plan in plans]
    by_name: Counter[str] = Counter()
    for plan, number in pods:
        by_name.update({name: count * number for name, count in devices(plan).items()})
    disk = sum(storage_bytes(plan.budget.storage) * number for plan, number in pods)
    amounts = [
        many(sum(number for _, number in pods), "engine pod"),
        *(f"{count:,} {name}" for name, count in by_name.items()),
        f"{size(sum(memory_bytes(plan) * number for plan, number in pods))} of memory",
        *([f"{size(disk)} of node disk"] if disk else []),
    ]
    at_most = ", at most" if any(_is_scaled(plan) for plan in plans) else ""
    return f"all {len(plans)} resources{at_most}: {', '.join(amounts)}"


def _is_scaled(plan: Plan) -> bool:
    return plan.resource.spec.autoscaling is not None


def largest_first(parts: Iterable[MemoryPart], least_bytes: int) -> str:
    """Parts in words: a few of at least so many bytes by name, and the rest of them together."""
    ordered = sorted(parts, key=lambda part: -part.bytes)
    named = [part for part in ordered if part.bytes >= least_bytes][:_MOST_NAMED]
    rest = sum(part.bytes for part in ordered) - sum(part.bytes for part in named)
    words = [f"{part.what} {size(part.bytes)}" for part in named]
    return ", ".join((*words, *([f"the rest {size(rest)}"] if rest else [])))
