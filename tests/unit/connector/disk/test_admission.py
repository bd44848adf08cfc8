"""What is worth writing to disk, and how much of it."""

import random
from itertools import accumulate

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kvtier_connector.core.disk.admission import BreakEven, Rate, WriteBudget

MIB = 1 << 20
HOUR_S = 3600.0


# ---- rates ----


def test_a_rate_is_believed_when_enough_was_measured() -> None:
    rate = Rate(settled=100)
    assert rate.per_second is None
    rate.measured(99, 9.9)
    assert rate.per_second is None
    rate.measured(50, 5)
    assert rate.per_second == pytest.approx(10)
    for _ in range(1000):
        rate.measured(0.5, 0.05)
        assert rate.per_second == pytest.approx(10)  # small amounts do not make it doubt again


def test_a_rate_follows_what_is_measured_later() -> None:
    rate = Rate(settled=100)
    rate.measured(400, 4)
    rate.measured(100, 100)
    halfway = rate.per_second
    assert halfway
    assert 1 < halfway < 10
    rate.measured(1000, 1000)
    assert rate.per_second == pytest.approx(1, rel=0.01)


def test_what_took_no_time_gives_no_rate() -> None:
    rate = Rate(settled=100)
    rate.measured(200, 0.0)
    assert rate.per_second is None


# ---- break-even ----


def measured(bytes_per_s: float, tokens_per_s: float) -> BreakEven:
    break_even = BreakEven()
    break_even.read_bytes.measured(1 << 30, (1 << 30) / bytes_per_s)
    break_even.prefill_tokens.measured(1 << 20, (1 << 20) / tokens_per_s)
    return break_even


def test_what_is_not_known_gets_the_benefit_of_the_doubt() -> None:
    assert all(BreakEven().pays(1e9) for _ in range(200))
    only_disk = BreakEven()
    only_disk.read_bytes.measured(1 << 30, 1e6)
    assert all(only_disk.pays(1e9) for _ in range(200))


def test_reading_pays_where_it_is_faster_than_computing() -> None:
    # 262,144 bytes a token (Qwen3-32B in bfloat16): 1 GB/s reads 3,815 tokens/s.
    assert measured(1e9, 3000).pays(262_144)
    assert not measured(1e9, 4000).pays(262_144)
    assert measured(1e9, 4000).pays(131_072)


def test_one_in_64_is_tried_although_it_does_not_pay() -> None:
    break_even = measured(1e9, 1e6)
    tried = [number for number in range(1, 200) if break_even.pays(262_144)]
    assert tried == [64, 128, 192]
    break_even.prefill_tokens.measured(1 << 24, (1 << 24) / 100)  # the model has become slow
    assert all(break_even.pays(262_144) for _ in range(100))


# ---- the budget ----


def test_no_bound_grants_everything() -> None:
    assert WriteBudget(0, 0.0).take(10**9, MIB, 0.0) == 10**9


def test_a_budget_is_spent_and_comes_back() -> None:
    budget = WriteBudget(3600 * MIB, 0.0)
    burst = budget.take(10**6, MIB, 0.0)
    assert burst == 600
    assert budget.take(1, MIB, 0.0) == 0
    assert budget.take(10, MIB, 1.0) == 0  # 5/6 of a block
    assert budget.take(10, MIB, 1.3) == 1
    assert budget.take(10**6, MIB, HOUR_S) in {599, 600}  # no more than the burst was saved


def test_a_clock_that_stands_still_gives_nothing() -> None:
    budget = WriteBudget(3600 * MIB, 100.0)
    budget.take(10**6, MIB, 100.0)
    assert [budget.take(5, MIB, 100.0) for _ in range(3)] == [0, 0, 0]


@given(
    st.integers(1, 200),
    st.lists(st.tuples(st.floats(0, 2000), st.sampled_from([0, 1, 300])), min_size=1, max_size=60),
)
@example(6, [(0.0, 300)] + [(599.0, 300)] * 6)
@example(12, [(4000.0, 300)] + [(100.0, 1)] * 40)
def test_no_hour_has_more_than_the_bound(blocks_an_hour: int, asked: list[tuple[float, int]]) -> None:
    bound = blocks_an_hour * MIB
    budget = WriteBudget(bound, 0.0)
    times = list(accumulate(pause for pause, _ in asked))
    granted = [budget.take(count, MIB, at) for at, (_, count) in zip(times, asked, strict=True)]
    for first, start in enumerate(times):
        within = sum(
            g for g, at in zip(granted[first:], times[first:], strict=True) if at < start + HOUR_S - 1e-6
        )
        assert within * MIB <= bound


@pytest.mark.parametrize("blocks_an_hour", [1, 2, 5, 100, 5000])
def test_who_always_asks_gets_most_of_the_bound(blocks_an_hour: int) -> None:
    budget = WriteBudget(blocks_an_hour * MIB, 0.0)
    chance = random.Random(blocks_an_hour)  # noqa: S311 - to be the same again
    at_s = total = 0.0
    while at_s < 20 * HOUR_S:
        at_s += chance.random() * 20
        total += budget.take(1000, MIB, at_s)
    assert 0.75 * 20 * blocks_an_hour <= total <= 21 * blocks_an_hour


def test_a_block_larger_than_the_bound_is_never_written() -> None:
    budget = WriteBudget(MIB, 0.0)
    assert [budget.take(1, 2 * MIB, hour * HOUR_S) for hour in range(5)] == [0] * 5
