"""The index against a plain model of what it promises: a dict, a list in order of use, and reader counts."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kvtier_connector.core.index import BlockIndex, BlockState

KEY_BYTES = 36
UNIVERSE = [number.to_bytes(KEY_BYTES, "big") for number in range(24)]
BATCHES = st.lists(st.sampled_from(UNIVERSE), min_size=1, max_size=12, unique=True)


class IndexMachine(RuleBasedStateMachine):
    @initialize(capacity=st.integers(1, 16))
    def start(self, capacity: int) -> None:
        self.capacity = capacity
        self.index = BlockIndex(capacity, KEY_BYTES)
        self.state: dict[bytes, BlockState] = {}
        self.slot: dict[bytes, int] = {}
        self.readers: dict[bytes, int] = {}
        self.rank: dict[bytes, int] = {}
        self.idle: list[bytes] = []  # oldest first
        self.loads: list[list[bytes]] = []

    def _drop(self, key: bytes) -> None:
        for known in (self.state, self.slot, self.readers, self.rank):
            known.pop(key)
        if key in self.idle:
            self.idle.remove(key)

    def _rank(self, keys: list[bytes]) -> None:
        base = max(self.rank.values(), default=0)
        self.rank |= {key: base + place for place, key in enumerate(reversed(keys), 1)}

    def _append(self, keys: list[bytes]) -> None:
        ordered = sorted(keys, key=self.rank.__getitem__)
        self.idle += ordered
        self._rank(ordered[::-1])

    def _touch(self, keys: list[bytes]) -> None:
        touched = [key for key in keys if key in self.idle]
        self.idle = [key for key in self.idle if key not in touched] + touched[::-1]
        self._rank(touched)

    @rule(keys=BATCHES, kept=st.none() | st.sampled_from(UNIVERSE))
    def reserve(self, keys: list[bytes], kept: bytes | None) -> None:
        self._touch(keys)
        lacking = [key for key in keys if key not in self.state]
        candidates = [key for key in self.idle if key not in keys]
        victims = candidates[: max(0, len(lacking) - (self.capacity - len(self.state)))]
        if kept in victims:
            victims = victims[: victims.index(kept)]
        for key in victims:
            self._drop(key)
        new = lacking[: self.capacity - len(self.state)]

        got = self.index.reserve(keys, keep=None if kept is None else lambda key: key == kept)

        assert got.keys == new
        assert got.evicted == victims
        for key, slot in zip(new, got.slots.tolist(), strict=True):
            self.state[key], self.slot[key], self.readers[key] = BlockState.PENDING, slot, 0
        self._rank(new)

    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        in_store = [key for key, state in self.state.items() if state == BlockState.PENDING]
        keys = data.draw(st.permutations(in_store))[: data.draw(st.integers(0, len(in_store)))]
        assert sorted(self.index.commit(keys)) == sorted(keys)
        for key in keys:
            self.state[key] = BlockState.READY
        self._append(keys)

    @rule(data=st.data())
    def invalidate_in_store_then_commit(self, data: st.DataObject) -> None:
        in_store = [key for key, state in self.state.items() if state == BlockState.PENDING]
        keys = data.draw(st.permutations(in_store))[: data.draw(st.integers(0, len(in_store)))]
        assert self.index.invalidate(keys) == []
        assert {self.index.state(key) for key in keys} <= {BlockState.BAD}
        assert self.index.commit(keys) == []
        for key in keys:
            self._drop(key)

    @rule(data=st.data())
    def pin(self, data: st.DataObject) -> None:
        ready = [key for key, state in self.state.items() if state == BlockState.READY]
        keys = data.draw(st.permutations(ready))[: data.draw(st.integers(0, len(ready)))]
        assert self.index.pin(keys).tolist() == [self.slot[key] for key in keys]
        for key in keys:
            self.readers[key] += 1
            if key in self.idle:
                self.idle.remove(key)
        self._rank(keys)
        self.loads.append(keys)

    @precondition(lambda self: self.loads)
    @rule(data=st.data())
    def unpin(self, data: st.DataObject) -> None:
        keys = self.loads.pop(data.draw(st.integers(0, len(self.loads) - 1)))
        self.index.unpin(data.draw(st.permutations(keys)))
        for key in keys:
            self.readers[key] -= 1
        idle = [key for key in keys if self.readers[key] == 0]
        for key in idle:
            if self.state[key] == BlockState.BAD:
                self._drop(key)
        self._append([key for key in idle if key in self.state])

    @rule(keys=BATCHES)
    def touch(self, keys: list[bytes]) -> None:
        self.index.touch(keys)
        self._touch(keys)

    @rule(keys=BATCHES)
    def invalidate_ready(self, keys: list[bytes]) -> None:
        ready = [key for key in keys if self.state.get(key) == BlockState.READY]
        assert self.index.invalidate(ready) == ready
        for key in ready:
            self.state[key] = BlockState.BAD
            if self.readers[key] == 0:
                self._drop(key)
            elif key in self.idle:
                self.idle.remove(key)

    @rule()
    def clear(self) -> None:
        self.index.clear()
        self.state.clear()
        self.slot.clear()
        self.readers.clear()
        self.rank.clear()
        self.idle.clear()
        self.loads.clear()

    @invariant()
    def agrees(self) -> None:
        assert {key: self.index.state(key) for key in UNIVERSE} == {
            key: self.state.get(key, BlockState.ABSENT) for key in UNIVERSE
        }
        assert self.index.used == len(self.state)
        assert len(set(self.slot.values())) == len(self.slot)
        assert all(0 <= slot < self.capacity for slot in self.slot.values())


IndexMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestIndex = IndexMachine.TestCase


def filled(index: BlockIndex, keys: list[bytes]) -> None:
    assert index.reserve(keys).keys == keys
    index.commit(keys)


def test_tails_are_evicted_before_roots() -> None:
    index = BlockIndex(4, KEY_BYTES)
    filled(index, UNIVERSE[:4])
    assert index.reserve(UNIVERSE[4:6]).evicted == [UNIVERSE[3], UNIVERSE[2]]


def test_a_prompt_larger_than_the_tier_keeps_its_beginning() -> None:
    index = BlockIndex(4, KEY_BYTES)
    assert index.reserve(UNIVERSE[:6]).keys == UNIVERSE[:4]


def test_a_block_being_loaded_is_never_evicted() -> None:
    index = BlockIndex(2, KEY_BYTES)
    filled(index, UNIVERSE[:2])
    index.pin(UNIVERSE[:2])
    assert index.reserve(UNIVERSE[2:4]).keys == []
    index.unpin(UNIVERSE[:2])
    assert index.reserve(UNIVERSE[2:4]).evicted == [UNIVERSE[1], UNIVERSE[0]]


@pytest.mark.parametrize("state", [BlockState.ABSENT, BlockState.PENDING, BlockState.BAD])
def test_only_ready_blocks_can_be_pinned(state: BlockState) -> None:
    index = BlockIndex(2, KEY_BYTES)
    if state is not BlockState.ABSENT:
        index.reserve(UNIVERSE[:1])
    if state is BlockState.BAD:
        index.invalidate(UNIVERSE[:1])
    with pytest.raises(KeyError):
        index.pin(UNIVERSE[:1])


def test_a_store_from_before_a_clear_cannot_be_committed() -> None:
    index = BlockIndex(4, KEY_BYTES)
    index.reserve(UNIVERSE[:2])
    index.clear()
    with pytest.raises(KeyError):
        index.commit(UNIVERSE[:2])
