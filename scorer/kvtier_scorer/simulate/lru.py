"""Caches of blocks in order of use, compiled: one a pod. What they are used for, caches.py says."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvtier_scorer.index.compiled import compiled

# A cache of `capacity` blocks has that many slots. Those that may be evicted are a ring in order of use whose
# sentinel is the slot number `capacity`: `newer[sentinel]` is evicted first, `older[sentinel]` last. A kernel
# that uses another one lies in this file, or numba would not notice that it changed.
FULL = -1  # why no slots were taken: too many are in use


class Lru(NamedTuple):
    """One cache a pod; the first index of each array is the pod."""

    slot_of: NDArray[np.int32]  # slot of each numbered block (int32), -1 where it is not there
    key: NDArray[np.int32]  # number of the block in each slot (int32), -1 where it is never looked for
    newer: NDArray[np.int32]  # the next in order of use (int32)
    older: NDArray[np.int32]  # the one before (int32)
    holders: NDArray[np.int32]  # requests that use each slot (int32); such a slot is not in the ring
    handed_out: NDArray[np.int32]  # slots that were ever used (int32, one a pod)
    idle: NDArray[np.int32]  # slots that nobody uses, whatever is in them (int32, one a pod)


def new_lru(pods: int, capacity: int, named: int) -> Lru:
    """Empty caches of `capacity` blocks, for blocks numbered 0 to `named` - 1."""
    newer = np.zeros((pods, capacity + 1), np.int32)
    newer[:, capacity] = capacity
    return Lru(
        slot_of=np.full((pods, named + 1), -1, np.int32),
        key=np.full((pods, capacity), -1, np.int32),
        newer=newer,
        older=newer.copy(),
        holders=np.zeros((pods, capacity), np.int32),
        handed_out=np.zeros(pods, np.int32),
        idle=np.full(pods, capacity, np.int32),
    )


@compiled
def unlink(lru: Lru, pod: int, slot: int) -> None:
    """Take a slot out of the ring."""
    before, after = lru.older[pod, slot], lru.newer[pod, slot]
    lru.newer[pod, before] = after
    lru.older[pod, after] = before


@compiled
def append(lru: Lru, pod: int, slot: int) -> None:
    """Put a slot into the ring as the last to be evicted."""
    end = lru.key.shape[1]
    last = lru.older[pod, end]
    lru.newer[pod, last] = slot
    lru.older[pod, slot] = last
    lru.newer[pod, slot] = end
    lru.older[pod, end] = slot


@compiled
def take_slot(lru: Lru, pod: int, block: int, evicted: NDArray[np.int32]) -> int:
    """A slot for `block`, out of the ring; what was in it counts in `evicted[0]` and follows there.

    Nothing may be in the ring only if a slot was never handed out.
    """
    capacity = lru.key.shape[1]
    slot = int(lru.handed_out[pod])
    if slot < capacity:
        lru.handed_out[pod] += 1
    else:
        slot = int(lru.newer[pod, capacity])
        unlink(lru, pod, slot)
        old = lru.key[pod, slot]
        if old >= 0:
            lru.slot_of[pod, old] = -1
            evicted[0] += 1
            evicted[evicted[0]] = old
    lru.key[pod, slot] = block
    if block >= 0:
        lru.slot_of[pod, block] = slot
    return slot


@compiled
def find_prefix(lru: Lru, pod: int, blocks: NDArray[np.int32], most: int) -> int:
    """How many of the first `most` blocks are there, without a gap."""
    for place in range(most):
        if blocks[place] < 0 or lru.slot_of[pod, blocks[place]] < 0:
            return place
    return most


@compiled
def hold(  # noqa: PLR0913, PLR0917 - a kernel's arrays
    lru: Lru,
    pod: int,
    blocks: NDArray[np.int32],
    hit: int,
    slots: NDArray[np.int32],
    evicted: NDArray[np.int32],
) -> int:
    """Give a request its slots: the first `hit` of its blocks are there, the others are made room for.

    `slots` is as long as `blocks`, `evicted` as for `take_slot`. Returns how many blocks are in use
    afterwards, or `FULL` and nothing has changed.
    """
    idle_hits = 0
    for place in range(hit):
        if lru.holders[pod, lru.slot_of[pod, blocks[place]]] == 0:
            idle_hits += 1
    if len(blocks) - hit > lru.idle[pod] - idle_hits:
        return -1
    for place in range(hit):
        slot = int(lru.slot_of[pod, blocks[place]])
        if lru.holders[pod, slot] == 0:
            unlink(lru, pod, slot)
            lru.idle[pod] -= 1
        lru.holders[pod, slot] += 1
        slots[place] = slot
    for place in range(hit, len(blocks)):
        block = int(blocks[place])
        if block >= 0 and lru.slot_of[pod, block] >= 0:
            # behind a gap: computed again, and the copy that is there stays the one found
            block = -1
        slot = take_slot(lru, pod, block, evicted)
        lru.holders[pod, slot] = 1
        lru.idle[pod] -= 1
        slots[place] = slot
    return int(lru.key.shape[1] - lru.idle[pod])


@compiled
def let_go(lru: Lru, pod: int, slots: NDArray[np.int32]) -> int:
    """End a request's use of its slots, the last first, so that tails are evicted before roots.

    Returns how many blocks are in use afterwards.
    """
    for place in range(len(slots) - 1, -1, -1):
        slot = int(slots[place])
        lru.holders[pod, slot] -= 1
        if lru.holders[pod, slot] == 0:
            append(lru, pod, slot)
            lru.idle[pod] += 1
    return int(lru.key.shape[1] - lru.idle[pod])


@compiled
def touch(lru: Lru, pod: int, blocks: NDArray[np.int32]) -> None:
    """Make those blocks that are there the newest, the first block the very newest."""
    for place in range(len(blocks) - 1, -1, -1):
        block = blocks[place]
        if block >= 0 and lru.slot_of[pod, block] >= 0:
            slot = int(lru.slot_of[pod, block])
            unlink(lru, pod, slot)
            append(lru, pod, slot)


@compiled
def store(
    lru: Lru, pod: int, blocks: NDArray[np.int32], stored: NDArray[np.int32], evicted: NDArray[np.int32]
) -> None:
    """Put blocks into a tier that nobody holds slots of; no more of them than it has room for altogether.

    Those that are there become the newest first, so that room is not made at their cost; at the end the order
    of use is that of the prompt, the first block the newest. `stored` is how many were not there, then their
    numbers without those of -1; `evicted` as for `take_slot`.
    """
    most = min(len(blocks), lru.key.shape[1])
    touch(lru, pod, blocks[:most])
    for place in range(most):
        block = int(blocks[place])
        if block < 0 or lru.slot_of[pod, block] < 0:
            append(lru, pod, take_slot(lru, pod, block, evicted))
            if block >= 0:
                stored[0] += 1
                stored[stored[0]] = block
    touch(lru, pod, blocks[:most])


@compiled
def find_in_tiers(
    tiers: tuple[Lru, ...], pod: int, blocks: NDArray[np.int32], most: int, found: NDArray[np.int64]
) -> None:
    """Count in `found` how many of the first `most` blocks each tier gives, without a gap.

    The device is asked first, then for each block behind what it has the other tiers in turn, as vLLM's
    scheduler and its offloading connector do. A tier of which there is one alone is all pods'.
    """
    found[:] = 0
    found[0] = find_prefix(tiers[0], pod, blocks, most)
    for place in range(found[0], most):
        block = blocks[place]
        tier = 1
        while (
            block >= 0
            and tier < len(tiers)
            and tiers[tier].slot_of[min(pod, tiers[tier].slot_of.shape[0] - 1), block] < 0
        ):
            tier += 1
        if block < 0 or tier == len(tiers):
            return
        found[tier] += 1


@compiled
def add_root_first(lru: Lru, pod: int, blocks: NDArray[np.int32], evicted: NDArray[np.int32]) -> None:
    """Use blocks from the first to the last, each making room for itself: what a plain LRU cache does.

    The first block of a prompt is then the oldest of them, so roots are evicted before tails.
    """
    for place in range(len(blocks)):
        block = int(blocks[place])
        if block >= 0 and lru.slot_of[pod, block] >= 0:
            slot = int(lru.slot_of[pod, block])
            unlink(lru, pod, slot)
        else:
            slot = take_slot(lru, pod, block, evicted)
        append(lru, pod, slot)
