"""The true caches of the pods, as vLLM keeps them.

- Device: blocks that requests use are pinned; the others are evicted in the order in which they were let go,
  tails before roots (vLLM 0.33.0, v1/core/block_pool.py, free_blocks and kv_cache_manager.free, reversed).
- A prompt that is found altogether still has its last token computed (kv_cache_manager, num_tokens - 1).
- CPU tier and disk: inclusive, in order of use, renewed when a request ends with its first block the newest
  (v1/kv_offload/cpu/policies/lru.py, on_request_finished).
- Remote tier: one for all pods, in order of use; a block goes there when a pod uses it a second time, as
  kvtier's connector has it.

Allowances: a request gets the blocks of its whole answer when it starts, where vLLM hands them out as it goes
and preempts when they run out; blocks are found from the moment at which the request that computes them
starts, and in the tiers from its first token.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kvtier_common.tier import OF_A_POD, Tier
from kvtier_scorer.index.compiled import compiled
from kvtier_scorer.simulate.blocks import Blocks
from kvtier_scorer.simulate.settings import PoolSettings
from kvtier_scorer.simulate.trace import PoolError

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


class CacheListener(Protocol):
    """Is told what the caches hold, as vLLM's KV events tell it."""

    def on_stored(self, pod: int, tier: Tier, blocks: NDArray[np.int32]) -> None:
        """`blocks` (int32), of one prompt and in its order, came into a tier."""

    def on_removed(self, pod: int, tier: Tier, blocks: NDArray[np.int32]) -> None:
        """`blocks` (int32) left a tier."""


class Caches:
    """The caches of all pods; `listener` is told of every change."""

    def __init__(self, pool: PoolSettings, blocks: Blocks, listener: CacheListener | None = None) -> None:
        self._blocks = blocks
        self._listener = listener
        pod = pool.pod
        self._held: dict[int, tuple[NDArray[np.int32], NDArray[np.int32]]] = {}
        trace = blocks.trace
        needed = -(-(trace.prompt_tokens + trace.output_tokens) // pod.block_tokens)
        worst = int(needed.argmax())
        if needed[worst] > pod.blocks[Tier.GPU]:
            raise PoolError(
                f"gpu_blocks: request {worst + 1} of the trace needs {needed[worst]:,} blocks of "
                f"{pod.block_tokens} tokens, a pod's device holds {pod.blocks[Tier.GPU]:,}; "
                "give --gpu-tokens more or another trace"
            )
        self._needed = needed
        # more room than all requests together need would stay empty, and only take memory here
        most = int(needed.sum())
        self._tiers = tuple(
            new_lru(pool.pods, min(pod.blocks[tier], most), blocks.named) for tier in OF_A_POD
        )
        store = pool.store
        self._store: tuple[Lru, ...] = (new_lru(1, min(store.blocks, most), blocks.named),) if store else ()
        longest = int(needed.max())
        self._found = np.zeros(len(Tier), np.int64)
        self._stored = np.zeros(longest + 1, np.int32)
        self._evicted = np.zeros(longest + 1, np.int32)

    def tier(self, tier: Tier) -> Lru:
        """The caches of one tier, for a look inside."""
        [lru] = self._store if tier.shared else (self._tiers[tier],)
        return lru

    def start(
        self, pod: int, request: int, pays: Callable[[Mapping[Tier, int]], bool]
    ) -> tuple[Mapping[Tier, int], int] | None:
        """Give a request what it needs.

        Args:
            pod: Its pod.
            request: Its number.
            pays: Whether to read what was found in the remote tier, too, where something was.

        Returns the blocks of the prompt that were found in each tier, and how many of the device's blocks are
        in use then; None where too many are.
        """
        if request not in self._held:
            needed = int(self._needed[request])
            prompt = self._blocks.of(request)
            blocks = np.full(needed, -1, np.int32)
            blocks[: len(prompt)] = prompt
            self._held[request] = (blocks, np.empty(needed, np.int32))
        blocks, slots = self._held[request]
        most = (int(self._blocks.trace.prompt_tokens[request]) - 1) // self._blocks.block_tokens
        find_in_tiers((*self._tiers, *self._store), pod, blocks, most, self._found)
        hits = dict(zip(Tier, self._found.tolist(), strict=True))
        if hits[Tier.REMOTE] and not pays(hits):
            find_in_tiers(self._tiers, pod, blocks, most, self._found)
            hits = dict(zip(Tier, self._found.tolist(), strict=True))
        on_device = hits[Tier.GPU]
        self._evicted[0] = 0
        in_use = hold(self._tiers[Tier.GPU], pod, blocks, on_device, slots, self._evicted)
        if in_use == FULL:
            return None
        if self._listener is not None:
            self._tell(pod, Tier.GPU, _numbered(blocks[on_device:]))
        self._share(_numbered(blocks[: sum(hits.values())]))
        return hits, in_use

    def offload_prompt(self, pod: int, request: int) -> None:
        """The prompt is computed, and goes to the tiers."""
        self._offload(pod, self._blocks.of(request))

    def end(self, pod: int, request: int) -> int:
        """The answer is complete; returns how many of the device's blocks are in use then."""
        blocks, slots = self._held.pop(request)
        prompt = int(self._blocks.trace.prompt_tokens[request]) // self._blocks.block_tokens
        # the answer's blocks are new, and older in order of use than the prompt's
        self._offload(pod, blocks[prompt:])
        self._offload(pod, _numbered(blocks))
        return let_go(self._tiers[Tier.GPU], pod, slots)

    def _offload(self, pod: int, blocks: NDArray[np.int32]) -> None:
        for tier in OF_A_POD[1:]:
            self._stored[0] = self._evicted[0] = 0
            store(self._tiers[tier], pod, blocks, self._stored, self._evicted)
            if self._listener is not None:
                self._tell(pod, tier, self._stored[1 : self._stored[0] + 1])

    def _share(self, used: NDArray[np.int32]) -> None:
        """What a pod has found it uses a second time; of the store nobody is told."""
        for lru in self._store:
            self._stored[0] = self._evicted[0] = 0
            store(lru, 0, used, self._stored, self._evicted)
            self._evicted[0] = 0

    def _tell(self, pod: int, tier: Tier, stored: NDArray[np.int32]) -> None:
        if self._listener is None:
            return
        if self._evicted[0]:
            self._listener.on_removed(pod, tier, self._evicted[1 : self._evicted[0] + 1].copy())
        if len(stored):
            self._listener.on_stored(pod, tier, stored.copy())


def _numbered(blocks: NDArray[np.int32]) -> NDArray[np.int32]:
    return blocks[blocks >= 0]
