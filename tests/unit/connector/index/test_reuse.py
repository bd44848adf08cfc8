import numpy as np
import pytest

from kvtier_connector.core.index.eviction import ReuseStatistics, gittins_index, hazard, in_order
from kvtier_connector.core.index.eviction_kernels import ONCE, STEPS, class_of, step_of

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
