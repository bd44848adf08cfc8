"""The compiled caches beside plain lists."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kvtier_scorer.simulate.lru import (
    FULL,
    Lru,
    add_root_first,
    find_in_tiers,
    find_prefix,
    hold,
    let_go,
    new_lru,
    store,
)

NAMED = 8
BLOCKS = st.lists(st.integers(-1, NAMED - 1), min_size=1, max_size=6).filter(
    lambda blocks: len({block for block in blocks if block >= 0}) == sum(block >= 0 for block in blocks)
)


def array(blocks: list[int]) -> NDArray[np.int32]:
    return np.array(blocks, np.int32)


def order(lru: Lru, pod: int) -> list[int]:
    """Blocks that may be evicted, the first to go first."""
    end = lru.key.shape[1]
    found, slot = [], int(lru.newer[pod, end])
    while slot != end:
        found.append(int(lru.key[pod, slot]))
        slot = int(lru.newer[pod, slot])
    return found


def changes() -> NDArray[np.int32]:
    return np.zeros(16, np.int32)


def listed(found: NDArray[np.int32]) -> list[int]:
    return [int(block) for block in found[1 : found[0] + 1]]


@given(st.integers(1, 6), st.lists(BLOCKS, max_size=20))
def test_root_first_is_a_plain_lru_cache(capacity: int, added: list[list[int]]) -> None:
    lru = new_lru(2, capacity, NAMED)
    model: list[int] = []
    for blocks in added:
        gone = changes()
        add_root_first(lru, 1, array(blocks), gone)
        expected = []
        for block in blocks:
            if block >= 0 and block in model:
                model.remove(block)
            elif len(model) == capacity:
                expected.append(model.pop(0))
            model.append(block)
        assert order(lru, 1) == model
        assert listed(gone) == [block for block in expected if block >= 0]
    assert order(lru, 0) == []


@given(st.integers(1, 6), st.lists(BLOCKS, max_size=20))
def test_a_tier_keeps_the_order_of_use_with_the_first_block_the_newest(
    capacity: int, added: list[list[int]]
) -> None:
    lru = new_lru(1, capacity, NAMED)
    model: list[int] = []
    for blocks in added:
        kept = blocks[:capacity]
        named = [block for block in kept if block >= 0]
        new = [block for block in named if block not in model]
        anonymous = len(kept) - len(named)
        others = [block for block in model if block not in named or block < 0]
        room = capacity - len(named) - anonymous
        gone, came = changes(), changes()
        store(lru, 0, array(blocks), came, gone)
        evicted = others[: max(0, len(others) - room)]
        # what only this request has comes in among its others, and is older than what is looked for again
        model = others[len(evicted) :] + [-1] * anonymous + named[::-1]
        assert order(lru, 0) == model
        assert listed(came) == new
        assert sorted(listed(gone)) == sorted(block for block in evicted if block >= 0)


def holding(blocks: set[int]) -> Lru:
    lru = new_lru(1, NAMED, NAMED)
    add_root_first(lru, 0, array(sorted(blocks)), changes())
    return lru


class PlainDevice:
    """A device cache as lists: idle blocks in order, and what requests hold."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.idle: list[int] = []
        self.held: list[list[int]] = []
        self.copies = 0

    def cached(self, block: int) -> bool:
        return block >= 0 and (block in self.idle or any(block in each for each in self.held))

    def in_use(self) -> int:
        named = {block for each in self.held for block in each if block >= 0}
        return len(named) + sum(block < 0 for each in self.held for block in each)

    def found(self, blocks: list[int]) -> int:
        for place, block in enumerate(blocks):
            if not self.cached(block):
                return place
        return len(blocks)

    def hold(self, blocks: list[int]) -> bool:
        hit = self.found(blocks)
        kept = blocks[:hit]
        idle_hits = sum(block in self.idle for block in kept)
        if len(blocks) - hit > self.capacity - self.in_use() - idle_hits:
            return False
        own = list(kept)
        self.idle = [block for block in self.idle if block not in kept]
        self.held.append(own)
        for block in blocks[hit:]:
            anonymous = self.cached(block)
            if self.in_use() + len(self.idle) == self.capacity:
                self.idle.pop(0)
            own.append(-1 if anonymous or block < 0 else block)
        return True

    def let_go(self, number: int) -> None:
        own = self.held.pop(number)
        for block in reversed(own):
            if block < 0 or not any(block in each for each in self.held):
                self.idle.append(block)


@given(
    st.integers(1, 8),
    st.lists(st.tuples(st.booleans(), BLOCKS, st.integers(0, 10)), max_size=30),
)
def test_a_device_pins_what_requests_hold_and_evicts_tails_before_roots(
    capacity: int, steps: list[tuple[bool, list[int], int]]
) -> None:
    lru = new_lru(1, capacity, NAMED)
    model = PlainDevice(capacity)
    slots: list[NDArray[np.int32]] = []
    for begins, blocks, which in steps:
        if begins:
            hit = find_prefix(lru, 0, array(blocks), len(blocks))
            assert hit == model.found(blocks)
            mine = np.zeros(len(blocks), np.int32)
            in_use = hold(lru, 0, array(blocks), hit, mine, changes())
            assert (in_use != FULL) == model.hold(blocks)
            if in_use == FULL:
                continue
            slots.append(mine)
        elif slots:
            in_use = let_go(lru, 0, slots.pop(which % len(slots)))
            model.let_go(which % (len(slots) + 1))
        else:
            continue
        assert in_use == model.in_use()
        # never-used slots are idle without being in the order of use
        assert order(lru, 0) == model.idle


@given(BLOCKS, *[st.sets(st.integers(0, NAMED - 1))] * 3, st.integers(0, 6))
def test_tiers_are_asked_fastest_first_and_a_gap_ends_the_search(
    blocks: list[int], on_gpu: set[int], on_cpu: set[int], on_disk: set[int], most: int
) -> None:
    most = min(most, len(blocks))
    tiers = tuple(holding(held) for held in (on_gpu, on_cpu, on_disk))
    gpu, cpu, disk = 0, 0, 0
    while gpu < most and blocks[gpu] in on_gpu:
        gpu += 1
    for block in blocks[gpu:most]:
        if block in on_cpu:
            cpu += 1
        elif block in on_disk:
            disk += 1
        else:
            break
    found = np.full(3, 9, np.int64)
    find_in_tiers(tiers, 0, array(blocks), most, found)
    assert found.tolist() == [gpu, cpu, disk]
