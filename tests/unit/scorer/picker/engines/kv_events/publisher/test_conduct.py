"""A pod that behaved badly is not forgiven for leaving, and replays are not asked for without end."""

from kvtier_scorer.picker.engines.kv_events.publisher.conduct import Conducts


def test_who_comes_back_within_a_minute_still_is_left_alone() -> None:
    now = [100.0]
    conducts = Conducts(lambda: now[0])
    conduct = conducts.came("pod")
    conduct.exceeded(100.0, 100.0)
    conduct.exceeded(101.0, 101.0)
    conducts.left("pod")
    now[0] = 160.0
    again = conducts.came("pod")
    assert (again.excesses, again.again_s) == (2, 103.0)
    assert conducts.came("another").excesses == 0
    conducts.left("pod")
    now[0] = 220.5
    assert conducts.came("pod").excesses == 0


def test_the_wait_grows_and_is_forgotten_after_a_long_good_time() -> None:
    conduct = Conducts(lambda: 0.0).came("pod")
    conduct.exceeded(0.0, 0.0)
    conduct.exceeded(1.0, 1.0)
    conduct.exceeded(3.0, 3.0)
    assert (conduct.excesses, conduct.again_s) == (3, 7.0)
    conduct.exceeded(7.0, 607.0)
    assert (conduct.excesses, conduct.again_s) == (1, 608.0)


def test_replays_that_succeed_are_counted_too() -> None:
    conduct = Conducts(lambda: 0.0).came("pod")
    asked = 0
    while conduct.may_replay(100.0):
        conduct.replayed()
        asked += 1
    assert asked == 8
    assert not conduct.may_replay(109.0)
    assert conduct.may_replay(110.5)
    assert not conduct.may_replay(111.0)


def test_replays_that_fail_are_asked_for_less_often() -> None:
    conduct = Conducts(lambda: 0.0).came("pod")
    conduct.did_not_replay(100.0)
    assert not conduct.may_replay(100.9)
    assert conduct.may_replay(101.0)
    conduct.did_not_replay(101.0)
    assert not conduct.may_replay(102.9)
    assert conduct.may_replay(103.0)
    conduct.replayed()
    assert conduct.replay_failures == 0


def test_no_more_than_some_thousands_are_remembered() -> None:
    conducts = Conducts(lambda: 0.0)
    for number in range(5000):
        conducts.came(str(number)).excesses = 1
        conducts.left(str(number))
    assert conducts.came("0").excesses == 0
    assert conducts.came("4999").excesses == 1
