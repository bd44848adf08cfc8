"""How much a pod may send, and what of a message is looked at."""

import msgspec
import pytest
from tests.unit.scorer.picker.engines.kv_events.wire import batch, name, stored

from kvtier_scorer.picker.engines.kv_events.limits import ByteRate, ByteRateLimiter, wait_s
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
        batch(stored([name(1)], [1] * (MIB + 1))),
        batch(stored([name(1)], range(16), extra_keys=[["a"] * 100])),
        batch(stored([name(1)], range(16), extra_keys=[None] * 70_000)),
    ],
    ids=["events", "removed", "tokens", "keys", "blocks' keys"],
)
def test_more_of_anything_than_a_step_has_is_malformed(payload: bytes) -> None:
    with pytest.raises(MalformedEventsError):
        list(decode(payload))


def test_what_is_not_looked_at_is_not_made_objects_of() -> None:
    nested: list[list[int]] = [[] for _ in range(200_000)]
    (event,) = decode(batch(stored([name(1)], range(16), extra_keys=[[nested]])))
    assert isinstance(event.extra_keys[0][0], msgspec.Raw)  # type: ignore[union-attr, index]
    assert list(decode(batch({"type": "New", "more": nested}))) == [None]
