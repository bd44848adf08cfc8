"""The index against a plain model of what it promises: dictionaries of states, slots and reader counts."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kvtier_connector.core.index.index import _RESTORED_AT_ONCE, BlockIndex, BlockState

KEY_BYTES = 36
UNIVERSE = [number.to_bytes(KEY_BYTES, "big") for number in range(24)]
BATCHES = st.lists(st.sampled_from(UNIVERSE), min_size=1, max_size=12, unique=True)


def packed(keys: list[bytes]) -> npt.NDArray[np.uint8]:
    return np.frombuffer(b"".join(keys), np.uint8).reshape(len(keys), KEY_BYTES)


class IndexMachine(RuleBasedStateMachine):
    @initialize(capacity=st.integers(1, 16))
    def start(self, capacity: int) -> None:
        self.capacity = capacity
        self.index = BlockIndex(capacity, KEY_BYTES)
        self.state: dict[bytes, BlockState] = {}
        self.slot: dict[bytes, int] = {}
        self.readers: dict[bytes, int] = {}
        self.loads: list[list[bytes]] = []

    def _drop(self, key: bytes) -> None:
        for known in (self.state, self.slot, self.readers):
            known.pop(key)

    def _let_go_of(self, keys: list[bytes]) -> None:
        for key in keys:
            self.readers[key] -= 1
            if self.readers[key] == 0 and self.state[key] == BlockState.BAD:
                self._drop(key)

    def _evictable(self) -> set[bytes]:
        return {
            key for key, state in self.state.items() if state == BlockState.READY and not self.readers[key]
        }

    @rule(keys=BATCHES, kept=st.frozensets(st.sampled_from(UNIVERSE)))
    def reserve(self, keys: list[bytes], kept: frozenset[bytes]) -> None:
        lacking = [key for key in keys if key not in self.state]
        free = self.capacity - len(self.state)
        candidates = self._evictable() - set(keys) - kept

        got = self.index.reserve(keys, keep=kept.__contains__)

        assert set(got.evicted) <= candidates
        assert len(got.evicted) == len(set(got.evicted)) == min(len(candidates), max(0, len(lacking) - free))
        assert got.keys == lacking[: free + len(got.evicted)]
        for key in got.evicted:
            self._drop(key)
        for key, slot in zip(got.keys, got.slots.tolist(), strict=True):
            self.state[key], self.slot[key], self.readers[key] = BlockState.PENDING, slot, 0

    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        in_store = [key for key, state in self.state.items() if state == BlockState.PENDING]
        keys = data.draw(st.permutations(in_store))[: data.draw(st.integers(0, len(in_store)))]
        assert sorted(self.index.commit(keys)) == sorted(keys)
        for key in keys:
            self.state[key] = BlockState.READY

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
        self.loads.append(keys)

    @precondition(lambda self: self.loads)
    @rule(data=st.data())
    def unpin(self, data: st.DataObject) -> None:
        keys = self.loads.pop(data.draw(st.integers(0, len(self.loads) - 1)))
        self.index.unpin(data.draw(st.permutations(keys)))
        self._let_go_of(keys)

    @precondition(lambda self: self.loads)
    @rule(data=st.data())
    def unpin_slots(self, data: st.DataObject) -> None:
        ended = data.draw(st.integers(1, len(self.loads)))
        keys = [key for load in self.loads[:ended] for key in load]
        del self.loads[:ended]
        slots = [self.slot[key] for key in data.draw(st.permutations(keys))]
        self.index.unpin_slots(np.array(slots, np.int32))
        self._let_go_of(keys)

    @rule(keys=BATCHES)
    def touch(self, keys: list[bytes]) -> None:
        self.index.touch(keys)

    @rule(keys=BATCHES)
    def invalidate_ready(self, keys: list[bytes]) -> None:
        ready = [key for key in keys if self.state.get(key) == BlockState.READY]
        assert self.index.invalidate(ready) == ready
        for key in ready:
            self.state[key] = BlockState.BAD
            if self.readers[key] == 0:
                self._drop(key)

    @rule()
    def clear(self) -> None:
        self.index.clear()
        self.state.clear()
        self.slot.clear()
        self.readers.clear()
        self.loads.clear()

    @precondition(lambda self: not self.state)
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        slots = data.draw(st.permutations(range(self.capacity)))[: data.draw(st.integers(0, self.capacity))]
        keys = [data.draw(st.sampled_from(UNIVERSE[:12])) for _ in slots]
        self.index.restore(packed(keys), np.array(slots, np.int32))
        self.slot |= dict(zip(keys, slots, strict=True))
        self.state |= dict.fromkeys(keys, BlockState.READY)
        self.readers |= dict.fromkeys(keys, 0)

    @rule(data=st.data())
    def rows(self, data: st.DataObject) -> None:
        first = data.draw(st.integers(0, self.capacity))
        last = data.draw(st.integers(first, self.capacity + 3))
        slots, keys = self.index.rows(first, last)
        found = dict(zip(map(bytes, keys), slots.tolist(), strict=True))
        assert found == {
            key: slot
            for key, slot in self.slot.items()
            if self.state[key] == BlockState.READY and first <= slot < last
        }

    @invariant()
    def agrees(self) -> None:
        assert {key: self.index.state(key) for key in UNIVERSE} == {
            key: self.state.get(key, BlockState.ABSENT) for key in UNIVERSE
        }
        assert self.index.used == len(self.state) <= self.capacity
        assert self.index.reservable == self.capacity - len(self.state) + len(self._evictable())
        assert len(set(self.slot.values())) == len(self.slot)
        assert all(0 <= slot < self.capacity for slot in self.slot.values())


IndexMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
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


def test_a_block_that_two_loads_read_is_evicted_when_both_have_ended() -> None:
    index = BlockIndex(2, KEY_BYTES)
    filled(index, UNIVERSE[:2])
    first, second = index.pin(UNIVERSE[:2]), index.pin(UNIVERSE[:2])
    index.unpin_slots(np.concatenate([first, second[:1]]))
    assert index.reserve(UNIVERSE[2:4]).evicted == UNIVERSE[:1]
    index.unpin_slots(second[1:])
    assert index.reserve(UNIVERSE[3:4]).evicted == UNIVERSE[1:2]


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


def test_a_restored_index_reads_its_slots_and_evicts_what_came_first() -> None:
    index = BlockIndex(4, KEY_BYTES)
    index.restore(packed(UNIVERSE[:3]), np.array([2, 0, 3], np.int32))
    assert index.pin(UNIVERSE[:3]).tolist() == [2, 0, 3]
    index.unpin(UNIVERSE[2::-1])
    assert index.used == 3
    reservation = index.reserve(UNIVERSE[4:7])
    assert sorted(reservation.slots.tolist()) == [0, 1, 3]
    assert reservation.evicted == [UNIVERSE[2], UNIVERSE[1]]


@pytest.mark.parametrize("between", [0, _RESTORED_AT_ONCE])
def test_of_a_key_restored_to_several_slots_the_last_keeps_it(between: int) -> None:
    index = BlockIndex(between + 3, KEY_BYTES)
    others = [number.to_bytes(KEY_BYTES, "big") for number in range(1000, 1000 + between)]
    keys = [UNIVERSE[0], *others, UNIVERSE[1], UNIVERSE[0]]
    index.restore(packed(keys), np.arange(len(keys), dtype=np.int32))
    assert index.used == between + 2
    assert index.pin([UNIVERSE[0]]).tolist() == [between + 2]
    assert index.reserve([UNIVERSE[5]]).slots.tolist() == [0]


@pytest.mark.parametrize(
    ("slots", "key_bytes", "why"),
    [
        ([0, 0], KEY_BYTES, "two keys"),
        ([0, 4], KEY_BYTES, "tier's 4"),
        ([0, -1], KEY_BYTES, "tier's 4"),
        ([0, 1], KEY_BYTES - 1, "36 bytes"),
    ],
)
def test_what_cannot_be_restored_is_refused_and_changes_nothing(
    slots: list[int], key_bytes: int, why: str
) -> None:
    index = BlockIndex(4, KEY_BYTES)
    with pytest.raises(ValueError, match=why):
        index.restore(packed(UNIVERSE[:2])[:, :key_bytes], np.array(slots, np.int32))
    assert index.used == 0
    index.reserve(UNIVERSE[:1])
    with pytest.raises(ValueError, match="empty"):
        index.restore(packed(UNIVERSE[:1]), np.array([1], np.int32))


@pytest.fixture
def _taking_turns() -> Iterator[None]:
    """Have threads change every 10 us: at Python's own 5 ms they meet less often, and wait for minutes."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_taking_turns")
def test_a_snapshot_taken_while_the_owner_works_has_only_slots_and_keys_of_the_index() -> None:
    index = BlockIndex(64, KEY_BYTES)
    done = Event()

    def snapshots() -> int:
        taken = 0
        while not done.is_set():
            slots, keys = index.rows(0, 64)
            assert len(slots) == len(keys) == len(set(slots.tolist()))
            taken += 1
        return taken

    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(snapshots)
        for number in range(2000):
            start = number % 16
            index.commit(index.reserve(UNIVERSE[start : start + 8]).keys)
            index.invalidate(UNIVERSE[start : start + 4])
            if number % 100 == 0:
                index.clear()
        done.set()
        assert reader.result() > 0


def test_the_newest_are_those_used_last_and_of_one_use_roots_before_tails() -> None:
    index = BlockIndex(24, KEY_BYTES)
    for first in range(0, 20, 5):
        index.commit(index.reserve(UNIVERSE[first : first + 5]).keys)
    index.reserve(UNIVERSE[20:22])  # not ready yet
    index.unpin_slots(index.pin(UNIVERSE[5:8]))
    index.touch(UNIVERSE[:2])
    in_order = [*UNIVERSE[:2], *UNIVERSE[5:8], *UNIVERSE[15:20], *UNIVERSE[10:15], *UNIVERSE[8:10]]
    assert index.newest(12)[5:10] == in_order[5:10]
    assert set(index.newest(5)) == set(in_order[:5])
    assert index.newest(17) == index.newest(99)[:17]
    assert index.newest(0) == []


def test_of_restored_blocks_those_stored_last_are_the_newest() -> None:
    capacity = 5000
    index = BlockIndex(capacity, KEY_BYTES)
    keys = [number.to_bytes(KEY_BYTES, "big") for number in range(capacity)]
    index.restore(packed(keys), np.arange(capacity, dtype=np.int32)[::-1].copy())
    newest = index.newest(3000)
    places = [int.from_bytes(key, "big") for key in newest]
    assert min(places) >= capacity - 3000 - 1024, "what is far older does not come before what is newer"
    assert len(set(places)) == 3000
