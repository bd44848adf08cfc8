"""The picker's compute resources: its index's memory, and what the resource says of them."""

from typing import Final

from kvtier_operator.api.quantity import parse_quantity
from kvtier_operator.api.resource import Spec
from kvtier_operator.api.router import Flavor
from kvtier_operator.planning.plan import PickerResources, RouterEntries
from kvtier_operator.planning.units import MIB, quantity, round_up

_CPU: Final = "500m"
"""It may burst; at a change, the next picker starts beside it."""
_BASE_BYTES: Final = 512 * MIB
_BYTES_PER_ENTRY: Final = 512
"""Upstream's pickers: an allowance for an LRU element, its map slot and the hash's pods; not measured."""
_BUILTIN_BYTES_PER_ENTRY: Final = 32
"""kvtier's own: what kvtier_scorer.index takes at most (a test of it measures 10 million entries)."""
_DEFAULT_ENTRIES: Final = 31250
"""Entries a pod where the picker takes them from the engine: upstream's default."""
_LEAST_PODS: Final = 8
"""Engines that the picker's memory allows for at least."""


def plan_picker_resources(spec: Spec, entries: RouterEntries) -> PickerResources:
    """What the resource asks for, over kvtier's own: memory for every index, processor time that may burst.

    What the resource leaves open stays within what it says: a limit below kvtier's request lowers that, a
    request above kvtier's limit raises it. The API sees to it that its own two agree.
    """
    memory = _memory_bytes(spec, entries)
    asked, bounded = spec.router.resources.requests, spec.router.resources.limits
    requests = {"cpu": _CPU, "memory": quantity(memory)} | {name: str(asked[name]) for name in asked}
    limits = {"memory": quantity(2 * memory)} | {name: str(bounded[name]) for name in bounded}
    for name in requests.keys() & limits.keys():
        if parse_quantity(requests[name]) <= parse_quantity(limits[name]):
            continue
        if name in asked:
            limits[name] = requests[name]
        else:
            requests[name] = limits[name]
    return PickerResources(requests=requests, limits=limits, memory_bytes=memory)


def _memory_bytes(spec: Spec, entries: RouterEntries) -> int:
    """Memory for the index of every engine.

    The number of engines is rounded up to a power of two: other resources are another pod, and a picker that
    restarts forgets its index, which scaling the engines must not cost each time.
    """
    known = [size for size in (entries.gpu_prefix, entries.cpu_prefix, entries.disk_prefix) if size]
    per_pod = sum(known) + (_DEFAULT_ENTRIES if entries.gpu_prefix is None else 0)
    pods = max(_LEAST_PODS, 1 << (spec.replicas - 1).bit_length())
    builtin = spec.router.flavor is Flavor.BUILTIN
    index = per_pod * pods * (_BUILTIN_BYTES_PER_ENTRY if builtin else _BYTES_PER_ENTRY)
    return round_up(_BASE_BYTES + index, 64 * MIB)
