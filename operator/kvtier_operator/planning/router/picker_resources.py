"""The picker's compute resources: its index's memory, and what the resource says of them."""

from collections.abc import Mapping
from typing import Final

from kvtier_common.tier import Tier
from kvtier_operator.api.resource import Spec
from kvtier_operator.planning.flavors import flavor_traits
from kvtier_operator.planning.pod.compute import Compute, compute
from kvtier_operator.planning.router.router_plan import PickerResources
from kvtier_operator.planning.units import MIB, quantity, round_up
from kvtier_scorer.config.contract import BYTES_PER_HELD_BLOCK, EVENTS_BYTES, BodyLimits

_CPU: Final = "500m"
"""It may burst; at a change, the next picker starts beside it."""
_BASE_BYTES: Final = 512 * MIB
_DEFAULT_ENTRIES: Final = 31250
"""Entries a pod where the picker takes them from the engine: upstream's default."""
_LEAST_PODS: Final = 8
"""Engines that the picker's memory allows for at least."""


def plan_picker_resources(
    spec: Spec, entries: Mapping[Tier, int | None], bodies: BodyLimits
) -> PickerResources:
    """What the resource asks for, over kvtier's own: memory for every index, processor time that may burst.

    The limit of kvtier's own picker holds the worst that clients may send it, that of upstream's, which have
    no such bound, a good deal of requests.
    """
    index = _index_bytes(spec, entries)
    takes = flavor_traits(spec.router.flavor).memory
    memory = round_up(_BASE_BYTES + index, 64 * MIB)
    needed = takes.idle_bytes + index + _engines(spec) * takes.in_flight_bytes
    needed += bodies.worst_memory_bytes if takes.bounds_bodies else 0
    needed += EVENTS_BYTES if spec.router.kv_events else 0
    worst = max(memory, round_up(needed, 64 * MIB))
    own = Compute(
        requests={"cpu": _CPU, "memory": quantity(memory)},
        limits={"memory": quantity(max(2 * memory, worst))},
    )
    found = compute(own, spec.router.resources)
    return PickerResources(found.requests, found.limits, memory_bytes=worst)


def _index_bytes(spec: Spec, entries: Mapping[Tier, int | None]) -> int:
    """Memory for the index of every engine, and for what their events tell."""
    per_pod = sum(filter(None, entries.values()))
    if entries.get(Tier.GPU) is None:
        per_pod += _DEFAULT_ENTRIES
    entry_bytes = flavor_traits(spec.router.flavor).memory.bytes_per_entry
    entry_bytes += BYTES_PER_HELD_BLOCK if spec.router.kv_events else 0
    return per_pod * _engines(spec) * entry_bytes


def _engines(spec: Spec) -> int:
    """Engines that there is memory for: a power of two, and 8 at least.

    Other resources are another pod, and a picker that restarts forgets its index, which scaling the engines
    must not cost each time.
    """
    return max(_LEAST_PODS, 1 << (spec.most_replicas - 1).bit_length())
