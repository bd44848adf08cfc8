"""KV events over real ZeroMQ reach the index: tiers, removals, gaps, replays, publishers that begin anew."""

import pytest
from tests.cluster.harness.programs.ports import free_ports
from tests.picker.data_layer.kv_events.followed_pod import (
    FOUR,
    HASHES,
    IP,
    POD,
    STORED,
    FollowedPod,
    followed_pod,
)
from tests.picker.data_layer.kv_events.publisher import Publisher, running_publisher
from tests.picker.data_layer.polling import until
from tests.unit.scorer.picker.engines.kv_events.wire import CLEARED, batch, removed_event, stored_event

from kvtier_common.tier import OF_A_POD
from kvtier_scorer.picker.engines.kv_events.subscriber import EventPorts


async def test_each_medium_is_a_tier_and_what_is_removed_is_gone(
    followed: FollowedPod, publisher: Publisher
) -> None:
    await publisher.subscribed()
    await publisher.publish(STORED)
    await until(lambda: followed.held == [4, 0, 0])
    assert followed.precise
    await publisher.publish(
        batch(stored_event(FOUR, (), medium="CPU"), stored_event(FOUR[:2], (), medium="STORAGE"))
    )
    await until(lambda: followed.held == [4, 4, 2])
    await publisher.publish(
        batch(removed_event(FOUR[1:]), removed_event(FOUR[3:], "CPU"), removed_event(FOUR[:1], "STORAGE"))
    )
    await until(lambda: followed.held == [1, 3, 0])
    await publisher.publish(batch(CLEARED))
    await until(lambda: followed.held == [0, 0, 0])
    assert followed.precise


async def test_what_was_published_before_is_replayed_at_once(publisher: Publisher, ports: EventPorts) -> None:
    await publisher.publish(STORED)
    await publisher.publish(batch(removed_event(FOUR[2:])))
    async with followed_pod(ports) as followed:
        await until(lambda: followed.held == [2, 0, 0])
        assert followed.precise
    assert publisher.replays == [0]


async def test_a_gap_is_closed_by_a_replay(followed: FollowedPod, publisher: Publisher) -> None:
    await publisher.subscribed()
    await publisher.publish(STORED)
    await until(lambda: followed.precise)
    await publisher.publish(batch(stored_event(FOUR, (), medium="CPU")), lost=True)
    await publisher.publish(batch(removed_event(FOUR[2:])), lost=True)
    await publisher.publish(batch(removed_event(FOUR[1:2])))
    await until(lambda: followed.held == [1, 4, 0])
    assert followed.precise
    assert publisher.replays[-1] == 1


async def test_a_gap_that_a_replay_cannot_close_makes_the_pod_approximate(
    followed: FollowedPod, publisher: Publisher, caplog: pytest.LogCaptureFixture
) -> None:
    await publisher.subscribed()
    await publisher.publish(STORED)
    await until(lambda: followed.precise)
    await publisher.publish(batch(removed_event(FOUR)), lost=True)
    publisher.buffer.clear()
    await publisher.publish(batch())
    await until(lambda: not followed.precise)
    assert followed.held == [0, 0, 0]
    assert f"pod {POD}" in caplog.text
    followed.index.assume_stored(followed.number, HASHES)
    assert followed.held == [4, 4, 4], "it is guessed again"
    await publisher.publish(batch(CLEARED))
    await until(lambda: followed.precise)
    assert followed.held == [0, 0, 0]


async def test_a_publisher_that_starts_anew_holds_what_it_says_since(
    followed: FollowedPod, ports: EventPorts, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_publisher(IP, ports.port) as first:
        await first.subscribed()
        await first.publish(STORED)
        await first.publish(batch())
        await until(lambda: followed.held == [4, 0, 0])
    await until(lambda: not followed.precise)
    assert followed.held == [0, 0, 0]
    assert "the connection to its KV events was lost" in caplog.text
    async with running_publisher(IP, ports.port) as second:
        await second.subscribed()
        await second.publish(batch(stored_event(FOUR[:2], range(32))))
        await until(lambda: followed.held == [2, 0, 0])
        assert followed.precise


@pytest.mark.parametrize(
    "message",
    [
        [b"only"],
        [b"", b"short", STORED],
        [b"", bytes(8), STORED, b"more"],
        [b"", bytes(7) + b"\x01", b"\xc1"],
    ],
    ids=["one-frame", "short-number", "four-frames", "not-msgpack"],
)
async def test_messages_of_something_else_make_it_approximate_and_no_more(
    followed: FollowedPod, publisher: Publisher, message: list[bytes]
) -> None:
    await publisher.subscribed()
    await publisher.publish(STORED)
    await until(lambda: followed.precise)
    await publisher.send(message)
    await until(lambda: not followed.precise)
    assert followed.held == [0, 0, 0]
    publisher.number = max(publisher.number, 2)
    await publisher.publish(batch(CLEARED))
    await publisher.publish(STORED)
    await until(lambda: followed.held == [4, 0, 0])


async def test_a_pod_that_is_forgotten_changes_nothing_any_more(
    followed: FollowedPod, publisher: Publisher
) -> None:
    await publisher.subscribed()
    await publisher.publish(STORED)
    await until(lambda: followed.precise)
    followed.subscriber.forget(POD)
    followed.index.remove_pod(followed.number)
    await publisher.publish(batch(CLEARED))
    other = followed.index.add_pod(dict.fromkeys(OF_A_POD, 1000))
    followed.subscriber.follow(POD, other, 0, "m")
    await until(lambda: followed.precise)
    assert publisher.replays == [0, 0]


async def test_ranks_publish_on_ports_of_their_own() -> None:
    low, high = sorted(free_ports(2))
    ports = EventPorts(low)
    async with running_publisher(IP, high) as publisher, followed_pod(ports, high - low) as followed:
        await publisher.subscribed()
        await publisher.publish(STORED)
        await until(lambda: followed.held == [4, 0, 0])
