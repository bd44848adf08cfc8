"""KV events over real ZeroMQ reach the index: tiers, removals, gaps, replays, publishers that begin anew."""

from collections.abc import AsyncIterator

import numpy as np
import pytest
from tests.cluster.harness.ports import free_ports
from tests.picker.data_layer.polling import until
from tests.picker.data_layer.publisher import Publisher, running_publisher
from tests.unit.scorer.picker.kv_events.wire import CLEARED, batch, name, removed, stored

from kvtier_scorer.index.chain import prefix_seed, token_hashes
from kvtier_scorer.index.prefix_index import PrefixIndex
from kvtier_scorer.picker.kv_events.endpoints import EventPorts
from kvtier_scorer.picker.kv_events.subscriber import Subscriber
from kvtier_scorer.tier import Tier

IP = "127.0.0.1"
POD = f"{IP}:8000"
TOKENS = np.arange(64, dtype=np.uint32)
HASHES = token_hashes(TOKENS, prefix_seed("m", "", tokens=True), 16, 100)
FOUR = [name(each) for each in range(4)]
STORED = batch(stored(FOUR, range(64)))


class Pod:
    """One pod in an index, followed by a subscriber."""

    def __init__(self, ports: EventPorts) -> None:
        self.index = PrefixIndex()
        self.number = self.index.add_pod(dict.fromkeys(Tier, 1000))
        self.subscriber = Subscriber(self.index, 16, ports)

    @property
    def held(self) -> list[int]:
        """Blocks of the prompt that each tier is believed to hold."""
        lengths: list[int] = self.index.match(HASHES, np.array([self.number], np.int32))[:, 0].tolist()
        return lengths

    @property
    def precise(self) -> bool:
        return POD in self.subscriber.precise


@pytest.fixture
def ports() -> EventPorts:
    port, replay_port = free_ports(2)
    return EventPorts(port, replay_port)


@pytest.fixture
async def publisher(ports: EventPorts) -> AsyncIterator[Publisher]:
    async with running_publisher(IP, ports.port, ports.replay_port) as publisher:
        yield publisher


@pytest.fixture
async def pod(ports: EventPorts) -> AsyncIterator[Pod]:
    pod = Pod(ports)
    async with pod.subscriber:
        pod.subscriber.follow(POD, pod.number, 0, "m")
        yield pod


async def test_each_medium_is_a_tier_and_what_is_removed_is_gone(pod: Pod, publisher: Publisher) -> None:
    await publisher.subscribed()
    await publisher.publish(STORED)
    await until(lambda: pod.held == [4, 0, 0])
    assert pod.precise
    await publisher.publish(batch(stored(FOUR, (), medium="CPU"), stored(FOUR[:2], (), medium="STORAGE")))
    await until(lambda: pod.held == [4, 4, 2])
    await publisher.publish(batch(removed(FOUR[1:]), removed(FOUR[3:], "CPU"), removed(FOUR[:1], "STORAGE")))
    await until(lambda: pod.held == [1, 3, 0])
    await publisher.publish(batch(CLEARED))
    await until(lambda: pod.held == [0, 0, 0])
    assert pod.precise


async def test_what_was_published_before_is_replayed_at_once(publisher: Publisher, ports: EventPorts) -> None:
    await publisher.publish(STORED)
    await publisher.publish(batch(removed(FOUR[2:])))
    pod = Pod(ports)
    async with pod.subscriber:
        pod.subscriber.follow(POD, pod.number, 0, "m")
        await until(lambda: pod.held == [2, 0, 0])
        assert pod.precise
    assert publisher.replays == [0]


async def test_a_gap_is_closed_by_a_replay(pod: Pod, publisher: Publisher) -> None:
    await publisher.subscribed()
    await publisher.publish(STORED)
    await until(lambda: pod.precise)
    await publisher.publish(batch(stored(FOUR, (), medium="CPU")), lost=True)
    await publisher.publish(batch(removed(FOUR[2:])), lost=True)
    await publisher.publish(batch(removed(FOUR[1:2])))
    await until(lambda: pod.held == [1, 4, 0])
    assert pod.precise
    assert publisher.replays[-1] == 1


async def test_a_gap_that_a_replay_cannot_close_makes_the_pod_approximate(
    pod: Pod, publisher: Publisher, caplog: pytest.LogCaptureFixture
) -> None:
    await publisher.subscribed()
    await publisher.publish(STORED)
    await until(lambda: pod.precise)
    await publisher.publish(batch(removed(FOUR)), lost=True)
    publisher.buffer.clear()
    await publisher.publish(batch())
    await until(lambda: not pod.precise)
    assert pod.held == [0, 0, 0]
    assert f"pod {POD}" in caplog.text
    pod.index.sent(pod.number, HASHES)
    assert pod.held == [4, 4, 4], "it is guessed again"
    await publisher.publish(batch(CLEARED))
    await until(lambda: pod.precise)
    assert pod.held == [0, 0, 0]


async def test_a_publisher_that_starts_anew_holds_what_it_says_since(
    pod: Pod, ports: EventPorts, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_publisher(IP, ports.port) as first:
        await first.subscribed()
        await first.publish(STORED)
        await first.publish(batch())
        await until(lambda: pod.held == [4, 0, 0])
    await until(lambda: not pod.precise)
    assert pod.held == [0, 0, 0]
    assert "the connection to its KV events was lost" in caplog.text
    async with running_publisher(IP, ports.port) as second:
        await second.subscribed()
        await second.publish(batch(stored(FOUR[:2], range(32))))
        await until(lambda: pod.held == [2, 0, 0])
        assert pod.precise


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
    pod: Pod, publisher: Publisher, message: list[bytes]
) -> None:
    await publisher.subscribed()
    await publisher.publish(STORED)
    await until(lambda: pod.precise)
    await publisher.send(message)
    await until(lambda: not pod.precise)
    assert pod.held == [0, 0, 0]
    publisher.number = max(publisher.number, 2)
    await publisher.publish(batch(CLEARED))
    await publisher.publish(STORED)
    await until(lambda: pod.held == [4, 0, 0])


async def test_a_pod_that_is_forgotten_changes_nothing_any_more(pod: Pod, publisher: Publisher) -> None:
    await publisher.subscribed()
    await publisher.publish(STORED)
    await until(lambda: pod.precise)
    pod.subscriber.forget(POD)
    pod.index.remove_pod(pod.number)
    await publisher.publish(batch(CLEARED))
    other = pod.index.add_pod(dict.fromkeys(Tier, 1000))
    pod.subscriber.follow(POD, other, 0, "m")
    await until(lambda: pod.precise)
    assert publisher.replays == [0, 0]


async def test_ranks_publish_on_ports_of_their_own() -> None:
    low, high = sorted(free_ports(2))
    pod = Pod(EventPorts(low))
    async with running_publisher(IP, high) as publisher, pod.subscriber:
        pod.subscriber.follow(POD, pod.number, high - low, "m")
        await publisher.subscribed()
        await publisher.publish(STORED)
        await until(lambda: pod.held == [4, 0, 0])
