"""A tier that weighs what requests say of their blocks, and what tenants were promised: exact, and simple.

The order of leaving is that of use, but for five things:

- Blocks that a request of low priority stored leave first.
- A block that would leave while what was promised of it has not ended is kept, and the next leaves. No more
  than a part of the tier is kept so; beyond it that leaves whose promise ends last, of high priority after
  the others. A block that would stay anyway costs nothing of the part, so that the rest of the tier is a
  plain LRU cache, and nobody is worse off by others' promises than with that rest.
- A promise ends with its time, and what was kept for it alone then leaves first. Of two the later one holds.
- Of a tenant who has more than it may have at most, its own leave first.
- A tenant at or below its guaranteed part loses nothing to others; to its own it does.

kvtier's connector decides alike, of a sample of its slots.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvtier_common.hints import Priority
from kvtier_scorer.index.compiled import compiled, compiled_part
from kvtier_scorer.simulate.lru import Lru, new_lru
from kvtier_scorer.simulate.settings import PoolSettings
from kvtier_scorer.simulate.trace import Trace

_NO_QUEUE: Final = -1
_NOBODY: Final = 0
_LOW: Final = int(Priority.LOW)


class Hinted(NamedTuple):
    """One tier of all pods; the first index of an array is the pod unless it says else.

    Each slot is in a queue: that of what leaves first (0), its tenant's (1 and on), or, if it is kept, that
    of the request that promised something of it (behind the tenants'). A queue is a ring behind the slots.
    """

    lru: Lru  # where blocks are, and the rings
    used: NDArray[np.int64]  # when each slot was used, in uses (int64)
    queue: NDArray[np.int32]  # that each slot is in (int32)
    tenant: NDArray[np.int32]  # whose each slot is (int32)
    promise: NDArray[np.int32]  # the request that promised something of each slot, or -1 (int32)
    held: NDArray[np.int64]  # slots of each tenant (int64)
    kept: NDArray[np.int64]  # slots kept for each request, and at the end of all (int64)
    keeping: NDArray[
        np.int32
    ]  # requests for which some are kept, in any order, and at the end how many (int32)
    clock: NDArray[np.int64]  # uses so far (int64, one a pod)
    # of all pods alike
    until_s: NDArray[np.float64]  # end of what each request promised (float64, one a request)
    priority: NDArray[np.int64]  # of each request (int64)
    tenant_of: NDArray[np.int64]  # of each request (int64)
    guaranteed: NDArray[np.int64]  # slots of each tenant that no other's store takes (int64)
    most: NDArray[np.int64]  # slots of each tenant beyond which its own leave first (int64)
    most_kept: int  # slots that promises may keep


def new_hinted(pool: PoolSettings, capacity: int, named: int, trace: Trace) -> Hinted:
    """An empty tier of `capacity` blocks a pod; promises end at no time until requests make them."""
    pods, requests = pool.pods, len(trace)
    numbers = {name: number for number, name in enumerate(pool.tenants, 1)}
    queues = 1 + 1 + len(numbers) + requests
    lru = new_lru(pods, capacity, named)
    ring = np.tile(np.arange(capacity + queues, dtype=np.int32), (pods, 1))
    parts = [(0.0, 1.0), *((part.guaranteed, part.most) for part in pool.tenants.values())]
    return Hinted(
        lru=lru._replace(newer=ring, older=ring.copy()),
        used=np.zeros((pods, capacity), np.int64),
        queue=np.full((pods, capacity), _NO_QUEUE, np.int32),
        tenant=np.zeros((pods, capacity), np.int32),
        promise=np.full((pods, capacity), -1, np.int32),
        held=np.zeros((pods, 1 + len(numbers)), np.int64),
        kept=np.zeros((pods, requests + 1), np.int64),
        keeping=np.zeros((pods, requests + 1), np.int32),
        clock=np.zeros(pods, np.int64),
        until_s=np.full(requests, -1.0),
        priority=np.array([hints.priority for hints in trace.hints], np.int64),
        tenant_of=np.array([numbers.get(hints.tenant, _NOBODY) for hints in trace.hints], np.int64),
        guaranteed=np.array([int(capacity * least) for least, _ in parts], np.int64),
        most=np.array([int(capacity * most) for _, most in parts], np.int64),
        most_kept=int(capacity * pool.retained),
    )


@compiled
def store_hinted(  # noqa: PLR0913, PLR0917 - a kernel's arrays
    tier: Hinted,
    pod: int,
    request: int,
    now_s: float,
    blocks: NDArray[np.int32],
    stored: NDArray[np.int32],
    evicted: NDArray[np.int32],
) -> None:
    """Put a request's blocks into a tier, as `caches.store` does, and promise what it promises of them.

    What it may not have room for, from the last block on, is left out.
    """
    lru = tier.lru
    tenant = tier.tenant_of[request]
    most = min(len(blocks), tier.most[tenant])
    _use(tier, pod, request, now_s, blocks, most)
    for place in range(most):
        block = int(blocks[place])
        if block >= 0 and lru.slot_of[pod, block] >= 0:
            continue
        slot = _make_room(tier, pod, tenant, now_s, evicted)
        if slot < 0:
            break
        lru.key[pod, slot] = block
        tier.tenant[pod, slot] = tenant
        tier.held[pod, tenant] += 1
        tier.promise[pod, slot] = request if tier.until_s[request] >= now_s else -1
        tier.queue[pod, slot] = 0 if tier.priority[request] == _LOW else 1 + tenant
        _append(tier, pod, slot)
        if block >= 0:
            lru.slot_of[pod, block] = slot
            stored[0] += 1
            stored[stored[0]] = block
    _use(tier, pod, request, now_s, blocks, most)


@compiled_part
def _use(  # noqa: PLR0913, PLR0917 - a kernel's arrays
    tier: Hinted, pod: int, request: int, now_s: float, blocks: NDArray[np.int32], most: int
) -> None:
    """Make those of the first blocks that are there the newest, and the first of them the very newest."""
    low = tier.priority[request] == _LOW
    until_s = tier.until_s[request]
    for place in range(most - 1, -1, -1):
        block = blocks[place]
        if block < 0 or tier.lru.slot_of[pod, block] < 0:
            continue
        slot = int(tier.lru.slot_of[pod, block])
        _unlink(tier, pod, slot)
        before = tier.promise[pod, slot]
        if low:
            tier.promise[pod, slot] = -1
        elif until_s >= now_s and (
            before < 0
            or tier.until_s[before] < now_s
            or tier.priority[request] > tier.priority[before]
            or (tier.priority[request] == tier.priority[before] and until_s > tier.until_s[before])
        ):
            tier.promise[pod, slot] = request
        if not low or tier.queue[pod, slot] != 0:
            tier.queue[pod, slot] = 1 + tier.tenant[pod, slot]
        _append(tier, pod, slot)


@compiled_part
def _append(tier: Hinted, pod: int, slot: int) -> None:
    """Put a slot into its queue as the newest."""
    end = tier.lru.key.shape[1] + tier.queue[pod, slot]
    last = tier.lru.older[pod, end]
    tier.lru.newer[pod, last] = slot
    tier.lru.older[pod, slot] = last
    tier.lru.newer[pod, slot] = end
    tier.lru.older[pod, end] = slot
    tier.clock[pod] += 1
    tier.used[pod, slot] = tier.clock[pod]


@compiled_part
def _unlink(tier: Hinted, pod: int, slot: int) -> None:
    """Take a slot out of its queue; if it was kept, it is so no more."""
    before, after = tier.lru.older[pod, slot], tier.lru.newer[pod, slot]
    tier.lru.newer[pod, before] = after
    tier.lru.older[pod, after] = before
    request = tier.queue[pod, slot] - 1 - tier.held.shape[1]
    if request < 0:
        return
    tier.kept[pod, -1] -= 1
    tier.kept[pod, request] -= 1
    if tier.kept[pod, request] == 0:
        place = 0
        while tier.keeping[pod, place] != request:
            place += 1
        tier.keeping[pod, -1] -= 1
        tier.keeping[pod, place] = tier.keeping[pod, tier.keeping[pod, -1]]


@compiled_part
def _keep(tier: Hinted, pod: int, slot: int) -> None:
    """Keep a slot that would leave, for its promise."""
    _unlink(tier, pod, slot)
    request = tier.promise[pod, slot]
    tier.queue[pod, slot] = 1 + tier.held.shape[1] + request
    used = tier.used[pod, slot]
    _append(tier, pod, slot)
    tier.used[pod, slot] = used
    if tier.kept[pod, request] == 0:
        tier.keeping[pod, tier.keeping[pod, -1]] = request
        tier.keeping[pod, -1] += 1
    tier.kept[pod, request] += 1
    tier.kept[pod, -1] += 1


@compiled_part
def _make_room(tier: Hinted, pod: int, tenant: int, now_s: float, evicted: NDArray[np.int32]) -> int:
    """A slot that is in no queue; what was in it counts in `evicted[0]` and follows there. -1 for none."""
    lru = tier.lru
    if lru.handed_out[pod] < lru.key.shape[1]:
        lru.handed_out[pod] += 1
        return int(lru.handed_out[pod] - 1)
    slot = _leaving(tier, pod, tenant, now_s)
    if slot < 0:
        return -1
    _unlink(tier, pod, slot)
    tier.held[pod, tier.tenant[pod, slot]] -= 1
    old = lru.key[pod, slot]
    if old >= 0:
        lru.slot_of[pod, old] = -1
        evicted[0] += 1
        evicted[evicted[0]] = old
    return slot


@compiled_part
def _leaving(tier: Hinted, pod: int, tenant: int, now_s: float) -> int:
    """The slot that leaves for one that a tenant stores; -1 for none."""
    for other in range(tier.held.shape[1]):
        bounded = tier.most[other] < tier.lru.key.shape[1]
        if bounded and tier.held[pod, other] + (other == tenant) > tier.most[other]:
            slot = _oldest_of(tier, pod, other)
            if slot >= 0:
                return slot
    slot = _needless(tier, pod, tenant, now_s)
    while slot < 0:
        slot = _oldest(tier, pod, tenant)
        if slot < 0:
            return _least_kept(tier, pod, tenant)
        promise = tier.promise[pod, slot]
        if promise < 0 or tier.until_s[promise] < now_s:
            return slot
        _keep(tier, pod, slot)
        slot = _least_kept(tier, pod, tenant) if tier.kept[pod, -1] > tier.most_kept else -1
    return slot


@compiled_part
def _needless(tier: Hinted, pod: int, tenant: int, now_s: float) -> int:
    """A slot kept for a promise that is over, the longest one, or one that is to leave first; or -1."""
    capacity, tenants = tier.lru.key.shape[1], tier.held.shape[1]
    least = -1
    for place in range(tier.keeping[pod, -1]):
        request = tier.keeping[pod, place]
        if (
            tier.until_s[request] < now_s
            and _may_leave(tier, pod, int(tier.lru.newer[pod, capacity + 1 + tenants + request]), tenant)
            and (least < 0 or tier.until_s[request] < tier.until_s[least])
        ):
            least = request
    if least >= 0:
        return int(tier.lru.newer[pod, capacity + 1 + tenants + least])
    slot = int(tier.lru.newer[pod, capacity])
    return slot if slot < capacity and _may_leave(tier, pod, slot, tenant) else -1


@compiled_part
def _oldest(tier: Hinted, pod: int, tenant: int) -> int:
    """Of the slots that are neither kept nor to leave first, the one that was used least recently; or -1."""
    capacity = tier.lru.key.shape[1]
    oldest = -1
    for other in range(tier.held.shape[1]):
        slot = int(tier.lru.newer[pod, capacity + 1 + other])
        if (
            slot < capacity
            and _may_leave(tier, pod, slot, tenant)
            and (oldest < 0 or tier.used[pod, slot] < tier.used[pod, oldest])
        ):
            oldest = slot
    return oldest


@compiled_part
def _may_leave(tier: Hinted, pod: int, slot: int, tenant: int) -> bool:
    """Whether a tenant's store may take a slot from whose it is."""
    whose = tier.tenant[pod, slot]
    return bool(whose == tenant or tier.held[pod, whose] > tier.guaranteed[whose])


@compiled_part
def _least_kept(tier: Hinted, pod: int, tenant: int) -> int:
    """Of the slots that are kept, one whose promise ends last, of high priority only where no other is."""
    least = -1
    behind = tier.lru.key.shape[1] + 1 + tier.held.shape[1]
    for place in range(tier.keeping[pod, -1]):
        request = tier.keeping[pod, place]
        if not _may_leave(tier, pod, int(tier.lru.newer[pod, behind + request]), tenant):
            continue
        if (
            least < 0
            or tier.priority[request] < tier.priority[least]
            or (
                tier.priority[request] == tier.priority[least] and tier.until_s[request] > tier.until_s[least]
            )
        ):
            least = request
    return int(tier.lru.newer[pod, behind + least]) if least >= 0 else -1


@compiled_part
def _oldest_of(tier: Hinted, pod: int, tenant: int) -> int:
    """A tenant's own slot that leaves before its others; -1 where it has none."""
    capacity = tier.lru.key.shape[1]
    slot = int(tier.lru.newer[pod, capacity])
    while slot < capacity:
        if tier.tenant[pod, slot] == tenant:
            return slot
        slot = int(tier.lru.newer[pod, slot])
    slot = int(tier.lru.newer[pod, capacity + 1 + tenant])
    if slot < capacity:
        return slot
    behind = capacity + 1 + tier.held.shape[1]
    for place in range(tier.keeping[pod, -1]):
        slot = int(tier.lru.newer[pod, behind + tier.keeping[pod, place]])
        if tier.tenant[pod, slot] == tenant:
            return slot
    return -1
