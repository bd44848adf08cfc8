import numpy as np
import pytest

from kvtier_connector.core.reuse import _STEPS, ONCE, ReuseStatistics, hazard, in_order, worth

STEPS = np.ones(_STEPS)


def test_where_use_is_as_likely_at_any_age_all_ages_are_worth_the_same() -> None:
    # Of every two that reach a step one is used in it; the step takes the one half and the other whole: 3/4.
    assert worth(STEPS * 0.5, STEPS).tolist() == pytest.approx([0.5 / 0.75] * _STEPS)


def test_what_is_used_at_a_fixed_age_is_worth_more_the_nearer_it_comes_and_then_nothing() -> None:
    at_two = np.zeros(_STEPS)
    at_two[2] = 0.999
    found = worth(at_two, STEPS)
    assert found[:3].tolist() == pytest.approx([1 / 2.5, 1 / 1.5, 1 / 0.5], rel=0.01)
    assert found[3:].tolist() == [0.0] * (_STEPS - 3)


def test_hazard_is_the_share_of_those_that_got_so_far() -> None:
    used, lost = np.zeros(_STEPS), np.zeros(_STEPS)
    used[0], lost[0], used[2] = 1e6, 1e6, 1e6  # what is lost in a step has been there for half of it
    found = hazard(used, lost, 0.1)
    assert found[:3].tolist() == pytest.approx([1 / 2.5, 0, 1], abs=1e-3)
    assert found[3:].tolist() == pytest.approx([0.1] * (_STEPS - 3))


def test_an_earlier_class_is_never_worth_less_than_a_later_one_or_than_what_was_used_once() -> None:
    estimates = np.array([[3.0, 0.0], [1.0, 5.0], [2.0, 1.0], [0.0, 2.0]], np.float32)
    assert in_order(estimates).tolist() == [[3.0, 0.0], [3.0, 5.0], [3.0, 2.0], [3.0, 2.0]]


def test_before_anything_is_known_worth_falls_with_age_whatever_the_class() -> None:
    statistics = ReuseStatistics(6400)
    ages = np.arange(0, 6400, 400, dtype=np.uint32)
    for span in (0, 9, ONCE):
        found = statistics.worth(np.full(len(ages), span, np.uint8), ages).tolist()
        assert found == sorted(found, reverse=True)
        assert found[0] > 2 * found[-1]


def test_what_was_used_once_and_never_again_sinks_below_what_is_old_and_was_used_often() -> None:
    statistics = ReuseStatistics(640)
    often, once = np.full(64, 4, np.uint8), np.full(64, ONCE, np.uint8)
    for _ in range(200):
        statistics.use(often, np.full(64, 320, np.uint32))
        statistics.lose(once, np.full(64, 640, np.uint32))
        statistics.advance(64)
    fresh = statistics.worth(once[:1], np.array([0], np.uint32))
    old = statistics.worth(often[:1], np.array([200], np.uint32))
    assert 20 * fresh < old
