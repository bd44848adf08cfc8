"""How much a pod may send, and how soon it is listened to again."""

from collections.abc import Callable

import msgspec
import pytest
from tests.unit.scorer.picker.engines.kv_events.wire import batch, name, stored_event

from kvtier_scorer.picker.engines.kv_events.limits import (
    ByteRate,
    ByteRateLimiter,
    PodLimits,
    PodLimitsByAddress,
    wait_s,
)
from kvtier_scorer.picker.engines.kv_events.payload import MalformedEventsError, decode

MIB = 1 << 20


def test_a_bucket_fills_up_again() -> None:
    now_s = 0.0
    limiter = ByteRateLimiter(ByteRate(64 * MIB, 4 * MIB), lambda: now_s)
    limiter.consume(64 * MIB)
    assert not limiter.is_exceeded
    limiter.consume(MIB)
    assert limiter.is_exceeded
    now_s = 3600.0
    limiter.consume(64 * MIB)
    assert not limiter.is_exceeded
    limiter.consume(1)
    assert limiter.is_exceeded


def test_waits_double_up_to_five_minutes() -> None:
    assert [wait_s(failures) for failures in (0, 1, 2, 3, 99)] == [0.0, 1.0, 2.0, 4.0, 300.0]


@pytest.mark.parametrize(
    "payload",
    [
        msgspec.msgpack.encode([1.0, [None] * 70_000]),
        batch({"type": "BlockRemoved", "block_hashes": [1] * 70_000}),
        batch(stored_event([name(1)], [1] * (MIB + 1))),
        batch(stored_event([name(1)], range(16), extra_keys=[["a"] * 100])),
        batch(stored_event([name(1)], range(16), extra_keys=[None] * 70_000)),
    ],
    ids=["events", "removed", "tokens", "keys", "blocks' keys"],
)
def test_more_of_anything_than_a_step_has_is_malformed(payload: bytes) -> None:
    with pytest.raises(MalformedEventsError):
        list(decode(payload))


def test_what_is_not_looked_at_is_not_made_objects_of() -> None:
    nested: list[list[int]] = [[] for _ in range(200_000)]
    (event,) = decode(batch(stored_event([name(1)], range(16), extra_keys=[[nested]])))
    assert isinstance(event.extra_keys[0][0], msgspec.Raw)  # type: ignore[union-attr, index]
    assert list(decode(batch({"type": "New", "more": nested}))) == [None]


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
