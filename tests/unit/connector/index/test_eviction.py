import numpy as np
import numpy.typing as npt
import pytest

from kvtier_connector.core.index.eviction import (
    _STORED_TOGETHER,
    EvictionOrder,
    ReuseStatistics,
    gittins_index,
    hazard,
    in_order,
)
from kvtier_connector.core.index.eviction_kernels import ONCE, SPAN, SPAN_MASK, STEPS, class_of, step_of

ALIKE = np.ones(STEPS)


def test_where_use_is_as_likely_at_any_age_all_ages_are_worth_the_same() -> None:
    # Of every two that reach a step one is used in it; the step takes the one half and the other whole: 3/4.
    assert gittins_index(ALIKE * 0.5, ALIKE).tolist() == pytest.approx([0.5 / 0.75] * STEPS)


def test_what_is_used_at_a_fixed_age_is_worth_more_the_nearer_it_comes_and_then_nothing() -> None:
    at_two = np.zeros(STEPS)
    at_two[2] = 0.999
    found = gittins_index(at_two, ALIKE)
    assert found[:3].tolist() == pytest.approx([1 / 2.5, 1 / 1.5, 1 / 0.5], rel=0.01)
    assert found[3:].tolist() == [0.0] * (STEPS - 3)


def test_hazard_is_the_share_of_those_that_got_so_far() -> None:
    used, lost = np.zeros(STEPS), np.zeros(STEPS)
    used[0], lost[0], used[2] = 1e6, 1e6, 1e6  # what is lost in a step has been there for half of it
    found = hazard(used, lost, ALIKE * 0.1)
    assert found[:3].tolist() == pytest.approx([1 / 2.5, 0, 1], abs=1e-3)
    assert found[3:].tolist() == pytest.approx([0.1] * (STEPS - 3))


def test_an_earlier_class_is_never_worth_less_than_a_later_one_or_than_what_was_used_once() -> None:
    estimates = np.array([[3.0, 0.0], [1.0, 5.0], [2.0, 1.0], [0.0, 2.0]], np.float32)
    assert in_order(estimates).tolist() == [[3.0, 0.0], [3.0, 5.0], [3.0, 2.0], [3.0, 2.0]]


def rank(statistics: ReuseStatistics, span: int, age: int) -> int:
    return int(statistics.ranks[class_of(span), step_of(age, statistics.per_unit)])


def test_steps_are_half_octaves_of_ages_counted_from_one_unit() -> None:
    per_unit = np.float32(1 / 100)
    ages = [0, 41, 42, 99, 100, 182, 183, 299, 300, 1 << 31]
    assert [step_of(age, per_unit) for age in ages] == [0, 0, 1, 1, 2, 2, 3, 3, 4, STEPS - 1]


def test_before_anything_is_known_worth_falls_with_age_whatever_the_class() -> None:
    statistics = ReuseStatistics(6400)
    for span in (0, 9, ONCE):
        found = [rank(statistics, span, age) for age in range(0, 6400, 400)]
        assert found == sorted(found, reverse=True)
        assert found[0] > found[-1]


def test_what_was_used_once_and_never_again_sinks_below_what_is_old_and_was_used_often() -> None:
    statistics = ReuseStatistics(640)
    often, once = class_of(4), class_of(ONCE)
    for _ in range(200):
        statistics.used[often, step_of(320, statistics.per_unit)] += 64
        statistics.lost[once, step_of(640, statistics.per_unit)] += 64
        statistics.advance(64)
    assert rank(statistics, ONCE, 0) < rank(statistics, 4, 200)


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
        assert sorted(order.worst(wanted).slots.tolist()) == list(range(capacity))


@pytest.mark.parametrize("capacity", [9, 4099, 40_000])
def test_the_few_that_are_evictable_are_found_among_many(capacity: int) -> None:
    order = EvictionOrder(capacity)
    few = np.array([0, capacity // 2, capacity - 1], np.int32)
    order.holds[few] = 0
    for _ in range(3):
        found = order.worst(3).slots
        assert sorted(found.tolist()) == few.tolist()


def test_of_blocks_used_alike_the_oldest_leave_first_and_of_one_prompt_the_tail() -> None:
    order = order_of(6)
    for slots in ([3, 1, 5], [0, 4, 2]):
        order.insert(np.array(slots, np.int32), spans(ONCE, ONCE, ONCE), np.arange(3))
    assert order.worst(5).slots.tolist() == [5, 1, 3, 2, 4]
    order.refresh(np.array([3, 1, 5], np.int32), np.arange(3))
    assert order.worst(6).slots.tolist()[:3] == [2, 4, 0]


def test_of_restored_blocks_those_stored_long_ago_leave_first_and_of_a_prompt_the_tail() -> None:
    order = order_of(3 * _STORED_TOGETHER)
    prompts = np.random.default_rng(1).permutation(3 * _STORED_TOGETHER).astype(np.int32)
    order.restore(prompts)
    first = prompts[:_STORED_TOGETHER]
    assert order.worst(3 * _STORED_TOGETHER).slots.tolist()[:_STORED_TOGETHER] == first[::-1].tolist()


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
    assert (order._state.slots[prompt, SPAN] & SPAN_MASK).tolist() == [5, 5, 5, 9]


def test_time_may_pass_the_end_of_its_32_bits() -> None:
    order = order_of(6)
    order._clock = (1 << 32) - 2
    for root in (2, 0, 4):
        order.insert(np.array([root, root + 1], np.int32), spans(ONCE, ONCE), np.arange(2))
    assert order._clock == 4
    assert order.worst(6).slots.tolist() == [3, 2, 1, 0, 5, 4]
    order.use(np.array([2], np.int32), np.array([0]))
    assert order._state.slots[2, SPAN] & SPAN_MASK == step_of(6, order._state.per_unit)


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
