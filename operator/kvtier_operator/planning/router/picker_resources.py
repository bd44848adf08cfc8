"""The picker's compute resources: its index's memory, and what the resource says of them."""

from collections.abc import Mapping
from typing import Final

from kvtier_common.tier import Tier
from kvtier_operator.api.formats.quantity import parse_quantity
from kvtier_operator.api.resource import Spec
from kvtier_operator.api.router import Flavor
from kvtier_operator.planning.router.router_plan import PickerResources
from kvtier_operator.planning.units import MIB, quantity, round_up
from kvtier_scorer.config.body_limits import BodyLimits
from kvtier_scorer.config.kv_events import BYTES_PER_HELD_BLOCK, EVENTS_BYTES

_CPU: Final = "500m"
"""It may burst; at a change, the next picker starts beside it."""
_BASE_BYTES: Final = 512 * MIB
BYTES_PER_ENTRY: Final = 1280
"""Upstream's pickers: some 600 bytes are live (an LRU element, its map slot, the hash's pods), and Go
collects when there is twice as much. Measured: 1,096 to 1,217 for each of some 80,000 entries of llm-d-router
0.9 and 0.10, 1,250 of gaie 1.4."""
IN_FLIGHT_BYTES: Final = 48 * MIB
"""Upstream's pickers, for an engine: they keep the body of a request until its answer has ended. Ten of
100,000 tokens are 42 MiB in llm-d-router 0.9 and 0.10 before Go collects, 20 MiB in gaie 1.5. A test of
llm-d's own, 100 engines and 99 of these a second, came to 3.41 GiB in all (v0.10.0, docs/operations.md)."""
_BUILTIN_BYTES_PER_ENTRY: Final = 32
"""kvtier's own: what kvtier_scorer.index takes at most (a test of it measures 10 million entries)."""
_IDLE_BYTES: Final = 256 * MIB
"""Of kvtier's own picker with nothing to do: 205 MiB as measured, and some for the load itself."""
TRANSPORT_BYTES: Final = 64 * MIB
"""What the transport of kvtier's own picker holds at most: connections and streams by their windows and
unsent bytes."""
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

    What the resource leaves open stays within what it says: a limit below kvtier's request lowers that, a
    request above kvtier's limit raises it. The API sees to it that its own two agree.
    """
    index = _index_bytes(spec, entries)
    events = EVENTS_BYTES if _is_told(spec) else 0
    memory = round_up(_BASE_BYTES + index, 64 * MIB)
    if spec.router.flavor is Flavor.BUILTIN:
        needed = _IDLE_BYTES + index + bodies.worst_memory_bytes + TRANSPORT_BYTES + events
    else:
        needed = _BASE_BYTES + index + _engines(spec) * IN_FLIGHT_BYTES
    worst = max(memory, round_up(needed, 64 * MIB))
    asked, bounded = spec.router.resources.requests, spec.router.resources.limits
    requests = {"cpu": _CPU, "memory": quantity(memory)} | {name: str(asked[name]) for name in asked}
    limits = {"memory": quantity(max(2 * memory, worst))} | {name: str(bounded[name]) for name in bounded}
    for name in requests.keys() & limits.keys():
        if parse_quantity(requests[name]) <= parse_quantity(limits[name]):
            continue
        if name in asked:
            limits[name] = requests[name]
        else:
            requests[name] = limits[name]
    return PickerResources(requests=requests, limits=limits, memory_bytes=worst)


def _index_bytes(spec: Spec, entries: Mapping[Tier, int | None]) -> int:
    """Memory for the index of every engine, and for what their events tell."""
    per_pod = sum(filter(None, entries.values()))
    if entries.get(Tier.GPU) is None:
        per_pod += _DEFAULT_ENTRIES
    if spec.router.flavor is not Flavor.BUILTIN:
        return per_pod * _engines(spec) * BYTES_PER_ENTRY
    told = BYTES_PER_HELD_BLOCK if _is_told(spec) else 0
    return per_pod * _engines(spec) * (_BUILTIN_BYTES_PER_ENTRY + told)


def _engines(spec: Spec) -> int:
    """Engines that there is memory for: a power of two, and 8 at least.

    Other resources are another pod, and a picker that restarts forgets its index, which scaling the engines
    must not cost each time.
    """
    return max(_LEAST_PODS, 1 << (spec.replicas - 1).bit_length())


def _is_told(spec: Spec) -> bool:
    """Whether kvtier's own picker hears from the engines' events what they hold."""
    return spec.router.flavor is Flavor.BUILTIN and spec.router.kv_events
