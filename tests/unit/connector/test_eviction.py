import numpy as np
import numpy.typing as npt
import pytest

from kvtier_connector.core.eviction import _STORED_TOGETHER, Candidates, EvictionOrder
from kvtier_connector.core.reuse import ONCE


def everything(slots: Candidates) -> npt.NDArray[np.bool_]:
    return np.ones(len(slots), np.bool_)


def hashes(count: int) -> npt.NDArray[np.int64]:
    return np.random.default_rng(1).integers(-(1 << 63), 1 << 63, count, dtype=np.int64)


@pytest.mark.parametrize("capacity", [1, 2, 7, 8, 9, 63, 2048, 4099])
def test_every_slot_is_looked_at_once_however_many_are_wanted(capacity: int) -> None:
    order = EvictionOrder(capacity)
    for wanted in (capacity, capacity + 5):
        assert sorted(order.worst(wanted, everything).tolist()) == list(range(capacity))


@pytest.mark.parametrize("capacity", [9, 4099, 40_000])
def test_the_few_that_are_evictable_are_found_among_many(capacity: int) -> None:
    order = EvictionOrder(capacity)
    few = np.array([0, capacity // 2, capacity - 1], np.int32)
    for _ in range(3):
        found = order.worst(3, lambda slots: np.isin(slots, few))
        assert sorted(found.tolist()) == few.tolist()


def test_of_blocks_used_alike_the_oldest_leave_first_and_of_one_prompt_the_tail() -> None:
    order = EvictionOrder(6)
    for slots in ([3, 1, 5], [0, 4, 2]):
        order.insert(np.array(slots, np.int32), np.full(3, ONCE, np.uint8), np.arange(3))
    assert order.worst(5, everything).tolist() == [5, 1, 3, 2, 4]
    order.refresh(np.array([3, 1, 5], np.int32), np.arange(3))
    assert order.worst(6, everything).tolist()[:3] == [2, 4, 0]


def test_of_restored_blocks_those_stored_long_ago_leave_first_and_of_a_prompt_the_tail() -> None:
    order = EvictionOrder(3 * _STORED_TOGETHER)
    prompts = np.random.default_rng(1).permutation(3 * _STORED_TOGETHER).astype(np.int32)
    order.restore(prompts)
    first = prompts[:_STORED_TOGETHER]
    assert order.worst(3 * _STORED_TOGETHER, everything).tolist()[:_STORED_TOGETHER] == first[::-1].tolist()


def test_a_block_that_comes_back_is_known_once() -> None:
    order = EvictionOrder(1000)
    slots, keys = np.arange(8, dtype=np.int32), hashes(8)
    order.insert(slots, order.spans_of(keys), np.arange(8))
    order.remember(slots, keys)
    assert (order.spans_of(keys) != ONCE).sum() >= 7  # two may have shared a place
    assert (order.spans_of(keys) == ONCE).all()
    order.remember(slots, keys)
    order.clear()
    assert (order.spans_of(keys) == ONCE).all()


def test_a_root_counts_as_used_at_least_as_often_as_its_tails() -> None:
    order = EvictionOrder(100)
    prompt = np.arange(4, dtype=np.int32)
    order.insert(prompt, np.array([20, ONCE, 5, 9], np.uint8), np.arange(4))
    assert order._spans[prompt].tolist() == [5, 5, 5, 9]


def test_time_may_pass_the_end_of_its_32_bits() -> None:
    order = EvictionOrder(4)
    order._clock = (1 << 32) - 2
    for slot in (2, 0, 3):
        order.insert(np.array([slot, (slot + 1) % 4], np.int32), np.full(2, ONCE, np.uint8), np.arange(2))
    assert order._clock == 4
    assert order._ages(order._used_at[[2, 1, 3]]).tolist() == [6, 4, 2]
