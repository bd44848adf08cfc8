import numpy as np
import numpy.typing as npt
import pytest

from kvtier_connector.core.index.eviction import _STORED_TOGETHER, EvictionOrder
from kvtier_connector.core.index.eviction_kernels import ONCE, SPAN, step_of


def order_of(capacity: int) -> EvictionOrder:
    """One of whose slots all may leave."""
    order = EvictionOrder(capacity)
    order.holds.fill(0)
    return order


def marks(count: int) -> npt.NDArray[np.uint64]:
    return np.random.default_rng(1).integers(0, 1 << 64, count, dtype=np.uint64)


def spans(*of_each: int) -> npt.NDArray[np.uint32]:
    return np.array(of_each, np.uint32)


@pytest.mark.parametrize("capacity", [1, 2, 7, 8, 9, 63, 2048, 4099])
def test_every_slot_is_looked_at_once_however_many_are_wanted(capacity: int) -> None:
    order = order_of(capacity)
    for wanted in (capacity, capacity + 5):
        assert sorted(order.worst(wanted).tolist()) == list(range(capacity))


@pytest.mark.parametrize("capacity", [9, 4099, 40_000])
def test_the_few_that_are_evictable_are_found_among_many(capacity: int) -> None:
    order = EvictionOrder(capacity)
    few = np.array([0, capacity // 2, capacity - 1], np.int32)
    order.holds[few] = 0
    for _ in range(3):
        found = order.worst(3)
        assert sorted(found.tolist()) == few.tolist()


def test_of_blocks_used_alike_the_oldest_leave_first_and_of_one_prompt_the_tail() -> None:
    order = order_of(6)
    for slots in ([3, 1, 5], [0, 4, 2]):
        order.insert(np.array(slots, np.int32), spans(ONCE, ONCE, ONCE), np.arange(3))
    assert order.worst(5).tolist() == [5, 1, 3, 2, 4]
    order.refresh(np.array([3, 1, 5], np.int32), np.arange(3))
    assert order.worst(6).tolist()[:3] == [2, 4, 0]


def test_of_restored_blocks_those_stored_long_ago_leave_first_and_of_a_prompt_the_tail() -> None:
    order = order_of(3 * _STORED_TOGETHER)
    prompts = np.random.default_rng(1).permutation(3 * _STORED_TOGETHER).astype(np.int32)
    order.restore(prompts)
    first = prompts[:_STORED_TOGETHER]
    assert order.worst(3 * _STORED_TOGETHER).tolist()[:_STORED_TOGETHER] == first[::-1].tolist()


def test_a_block_that_comes_back_is_known_once() -> None:
    order = EvictionOrder(1000)
    slots, keys = np.arange(8, dtype=np.int32), marks(8)
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
    order.insert(prompt, spans(20, ONCE, 5, 9), np.arange(4))
    assert order._state.slots[prompt, SPAN].tolist() == [5, 5, 5, 9]


def test_time_may_pass_the_end_of_its_32_bits() -> None:
    order = order_of(6)
    order._clock = (1 << 32) - 2
    for root in (2, 0, 4):
        order.insert(np.array([root, root + 1], np.int32), spans(ONCE, ONCE), np.arange(2))
    assert order._clock == 4
    assert order.worst(6).tolist() == [3, 2, 1, 0, 5, 4]
    order.use(np.array([2], np.int32), np.array([0]))
    assert order._state.slots[2, SPAN] == step_of(6, order._state.per_unit)


def test_of_two_ghosts_in_one_place_that_stays_which_is_worth_more() -> None:
    order = EvictionOrder(64)
    slots, keys = np.arange(2, dtype=np.int32), np.array([7, 7 + 64 * (1 << 40)], np.uint64)
    order.insert(slots[:1], spans(ONCE), np.array([0]))
    order.insert(slots[1:], spans(ONCE), np.array([0]))
    order._advance(6400)
    order.insert(slots[1:], spans(ONCE), np.array([0]))
    for first, second in ((0, 1), (1, 0)):
        before = order._statistics.lost.sum()
        order.remember(slots[[first]], keys[[first]])
        order.remember(slots[[second]], keys[[second]])
        assert order._statistics.lost.sum() == before + 1
        assert (order.spans_of(keys) != ONCE).tolist() == [False, True]
