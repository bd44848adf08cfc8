"""A pod that behaved badly is not forgiven for leaving, and replays are not asked for without end."""

from collections.abc import Callable

from kvtier_scorer.picker.engines.kv_events.limits import ByteRate, PodLimits, PodLimitsByAddress


def limits_by_address(clock: Callable[[], float] = lambda: 0.0) -> PodLimitsByAddress:
    return PodLimitsByAddress(ByteRate(), clock)


def asked(limits: PodLimits, now_s: float) -> bool:
    """Asks for a replay if that may be."""
    if not limits.may_replay(now_s):
        return False
    limits.begin_replay(now_s)
    return True


def test_who_comes_back_within_a_minute_still_is_left_alone() -> None:
    now = [100.0]
    pods = limits_by_address(lambda: now[0])
    limits = pods.follow("pod")
    limits.on_excess(100.0, 100.0)
    limits.on_excess(101.0, 101.0)
    pods.forget("pod")
    now[0] = 160.0
    again = pods.follow("pod")
    assert (again.excesses, again.resume_s) == (2, 103.0)
    assert pods.follow("another").excesses == 0
    pods.forget("pod")
    now[0] = 220.5
    assert pods.follow("pod").excesses == 0


def test_the_wait_grows_and_is_forgotten_after_a_long_good_time() -> None:
    limits = limits_by_address().follow("pod")
    limits.on_excess(0.0, 0.0)
    limits.on_excess(1.0, 1.0)
    limits.on_excess(3.0, 3.0)
    assert (limits.excesses, limits.resume_s) == (3, 7.0)
    limits.on_excess(7.0, 607.0)
    assert (limits.excesses, limits.resume_s) == (1, 608.0)


def test_replays_that_succeed_are_counted_too() -> None:
    limits = limits_by_address().follow("pod")
    replays = 0
    while asked(limits, 100.0):
        limits.on_replayed()
        replays += 1
    assert replays == 8
    assert not asked(limits, 109.0)
    assert asked(limits, 110.5)
    assert not asked(limits, 111.0)


def test_replays_that_fail_are_asked_for_less_often() -> None:
    limits = limits_by_address().follow("pod")
    limits.on_replay_failed(100.0)
    assert not limits.may_replay(100.9)
    assert asked(limits, 101.0)
    limits.on_replay_failed(101.0)
    assert not limits.may_replay(102.9)
    assert asked(limits, 103.0)
    limits.on_replayed()
    assert limits.replay_failures == 0


def test_no_more_than_some_thousands_are_remembered() -> None:
    pods = limits_by_address()
    for number in range(5000):
        pods.follow(str(number)).excesses = 1
        pods.forget(str(number))
    assert pods.follow("0").excesses == 0
    assert pods.follow("4999").excesses == 1
