"""Who holds which prefix: each tier of each pod, as guessed from what was sent or as the pod itself says."""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvtier_common.tier import OF_A_POD, Tier
from kvtier_scorer.index import matching, recency, table
from kvtier_scorer.index.chain import Hashes, text_hashes, token_hashes
from kvtier_scorer.index.layout import (
    CAPACITY,
    DROPPED,
    ENTRIES,
    FREE,
    GHOSTS,
    HINT,
    HOLDER_FIELDS,
    NEWEST,
    NONE,
    OLDEST,
    PAGE_BYTES,
    PAGE_SLOTS,
    PRECISE,
    TIERS,
    USED_PAGES,
    IndexArrays,
)
from kvtier_scorer.index.memory import PageDirectory, new_pool, reserve_slots

PRECISE_SLACK: Final = 4
"""A precise tier's capacity is a hint: it may hold so many times that. A pod that only stores is broken."""
PRECISE_LEAST: Final = 65_536  # and at least so many entries, 1.5 MiB
_MOST_ENTRIES: Final = NONE - 2 * PAGE_SLOTS


class PrefixIndex:
    """Which blocks each pod holds, for each tier on its own.

    A pod is *approximate* at first: what was sent to it is what it holds, in each tier the newest blocks that
    fit, tails evicted before roots. A *precise* pod holds what it says.

    Hashes are chained (see `chain`): each stands for its block and all before it. The index builds on that;
    with other numbers it stays intact, but its answers mean nothing. Work is constant for each block, and
    nothing is ever copied or rehashed because an index has become large. One thread at a time.

    `limit_bytes` bounds the memory of all entries together; None for half of the control group's limit, or
    what the machine has. When it is used up, a tier's new blocks take the place of its own oldest, and what
    finds none is forgotten.
    """

    def __init__(self, limit_bytes: int | None = None) -> None:
        words = reserve_slots(limit_bytes)
        holders = np.zeros((0, HOLDER_FIELDS), np.int64)
        self._memory = IndexArrays(
            words, words.view(np.uint64), holders, np.zeros(1, np.int64), new_pool(words)
        )
        self._directory = PageDirectory()
        self._pods: set[int] = set()
        self._free_numbers: list[int] = []

    def add_pod(self, entries: Mapping[Tier, int]) -> int:
        """Add an approximate pod that holds nothing, of `entries` blocks, 0 for a missing tier.

        Its number is a removed pod's where there is one, else the next. Raises ValueError: a capacity is
        negative or more than the index can count.
        """
        for tier in OF_A_POD:
            _check_capacity(entries.get(tier, 0))
        pod = self._free_numbers.pop() if self._free_numbers else len(self._pods)
        if pod * TIERS == len(self._memory.holders):
            more = np.zeros((max(TIERS, len(self._memory.holders)), HOLDER_FIELDS), np.int64)
            more[:, [FREE, NEWEST, OLDEST]] = NONE
            self._memory = self._memory._replace(holders=np.concatenate((self._memory.holders, more)))
        self._pods.add(pod)
        for tier in OF_A_POD:
            self.resize(pod, tier, entries.get(tier, 0))
        return pod

    def remove_pod(self, pod: int) -> None:
        """Forget a pod and all that it held; KeyError, as of all others, if there is no such pod."""
        self.set_precise(pod, precise=False)
        for tier in OF_A_POD:
            holder = self._holder(pod, tier)
            self._directory.release(self._memory, holder)
            self._memory.holders[holder, [CAPACITY, HINT, DROPPED]] = 0
        self._pods.remove(pod)
        self._free_numbers.append(pod)

    def resize(self, pod: int, tier: Tier, entries: int) -> None:
        """Set a tier's capacity, in blocks. If it shrinks, the newest blocks stay; a precise pod keeps all.

        Raises ValueError: the capacity is negative or more than the index can count.
        """
        holder = self._holder(pod, tier)
        _check_capacity(entries)
        row = self._memory.holders[holder]
        row[HINT] = entries
        if row[PRECISE]:
            entries = max(int(row[ENTRIES]), min(PRECISE_SLACK * entries, _MOST_ENTRIES), PRECISE_LEAST)
        self._memory = self._directory.reserve(self._memory, holder, entries)
        recency.resize(self._memory, holder, entries)

    def match(self, hashes: Hashes, pods: NDArray[np.int32]) -> NDArray[np.int32]:
        """How many blocks each of `pods` holds of a prompt: contiguous, from the first, each tier on its own.

        Of shape (tiers, pods). A number that is no pod holds nothing.
        """
        lengths = np.empty((TIERS, len(pods)), np.int32)
        matching.match(self._memory, _as_kernel_array(hashes), np.ascontiguousarray(pods, np.int32), lengths)
        return lengths

    def assume_stored(self, pod: int, hashes: Hashes) -> None:
        """A request with these blocks went to the pod; each tier now holds as many of the first as fit.

        A precise pod will say itself what came of it.
        """
        self._check(pod)
        recency.assume_stored(self._memory, pod, _as_kernel_array(hashes))

    def set_precise(self, pod: int, *, precise: bool) -> None:
        """From now on the pod itself says what it holds, or it no longer does. It now holds nothing."""
        for tier in OF_A_POD:
            holder = self._holder(pod, tier)
            table.clear(self._memory, holder)
            self._memory.holders[holder, PRECISE] = precise
            self.resize(pod, tier, self.capacity(pod, tier))

    def is_precise(self, pod: int) -> bool:
        """Whether the pod says itself what it holds."""
        return bool(self._memory.holders[self._holder(pod, Tier.GPU), PRECISE])

    def store(self, pod: int, tier: Tier, hashes: Hashes, parent: int | None) -> None:
        """A precise pod stored blocks of one prompt, one following the other.

        `parent` is the hash of the block before them, whether or not the pod holds it; None says that they
        begin the prompt, and must not stand for a parent that is not known: a match could then be too long.
        What does not fit is counted in `dropped`.
        """
        holder = self._precise(pod, tier)
        lost = matching.store_blocks(
            self._memory, holder, _as_kernel_array(hashes), np.uint64(parent or 0), parent is None
        )
        self._memory.holders[holder, DROPPED] += lost

    def remove(self, pod: int, tier: Tier, hashes: Hashes) -> None:
        """A precise pod removed blocks; what followed them it still holds, and no match reaches it."""
        matching.remove_blocks(self._memory, self._precise(pod, tier), _as_kernel_array(hashes))

    def clear(self, pod: int, tier: Tier) -> None:
        """A precise pod removed everything from the tier."""
        table.clear(self._memory, self._precise(pod, tier))

    def used_blocks(self, pod: int, tier: Tier) -> int:
        """Blocks that the tier holds."""
        row = self._memory.holders[self._holder(pod, tier)]
        return int(row[ENTRIES] - row[GHOSTS])

    def capacity(self, pod: int, tier: Tier) -> int:
        """The tier's capacity in blocks, as given."""
        return int(self._memory.holders[self._holder(pod, tier), HINT])

    def dropped_blocks(self, pod: int, tier: Tier) -> int:
        """Blocks that a precise pod stored and the index had no slot for."""
        return int(self._memory.holders[self._holder(pod, tier), DROPPED])

    @property
    def nbytes(self) -> int:
        """Memory in use, in bytes. What was given back is used again, but not returned to the system."""
        memory = self._memory
        return int(memory.pool[USED_PAGES]) * PAGE_BYTES + memory.holders.nbytes + memory.directory.nbytes

    def _check(self, pod: int) -> None:
        if pod not in self._pods:
            raise KeyError(f"no pod has the number {pod}")

    def _holder(self, pod: int, tier: Tier) -> int:
        self._check(pod)
        return pod * TIERS + tier

    def _precise(self, pod: int, tier: Tier) -> int:
        holder = self._holder(pod, tier)
        if not self._memory.holders[holder, PRECISE]:
            raise ValueError(f"pod {pod} is approximate: only a precise pod says what it holds")
        return holder


def load_kernels() -> None:
    """Load or compile every kernel, so that no request waits for it. Call it once, before serving."""
    index = PrefixIndex(PAGE_BYTES)
    hashes = text_hashes(bytes(2), 0, 1, 2)
    token_hashes(np.zeros(1, np.uint32), 0, 1, 1)
    pod = index.add_pod({Tier.GPU: 2})
    index.assume_stored(pod, hashes)
    index.match(hashes, np.array([pod], np.int32))
    index.set_precise(pod, precise=True)
    index.store(pod, Tier.GPU, hashes, None)
    index.remove(pod, Tier.GPU, hashes)
    index.remove_pod(pod)


def _check_capacity(entries: int) -> None:
    if not 0 <= entries <= _MOST_ENTRIES:
        raise ValueError(f"a tier's capacity is from 0 to {_MOST_ENTRIES} blocks, not {entries}")


def _as_kernel_array(hashes: Hashes) -> Hashes:
    """The same hashes as one kind of array, whatever the caller has: a kernel exists for that kind only."""
    view = np.ascontiguousarray(hashes, np.uint64).view()
    view.flags.writeable = False
    return view
