"""Pods that publish without end, too much at a time, or replay for ever, over real ZeroMQ."""

import asyncio
import logging
from collections.abc import Generator

import pytest
import zmq.asyncio
from tests.cluster.harness.programs.ports import free_ports
from tests.picker.data_layer.kv_events.followed_pod import IP, POD, STORED, FollowedPod, followed_pod
from tests.picker.data_layer.kv_events.publisher import Publisher, running_publisher
from tests.picker.data_layer.polling import until
from tests.unit.scorer.picker.engines.kv_events.wire import batch, stored_event

from kvtier_scorer.picker.engines.kv_events.limits import (
    BLOCK_BYTES,
    MOST_MESSAGE_BYTES,
    ByteRate,
)
from kvtier_scorer.picker.engines.kv_events.payload import PART_BLOCKS
from kvtier_scorer.picker.engines.kv_events.subscriber import EventEndpoint, EventPorts, ReplayError, replay

LEFT_ALONE = ("it sends more KV events than any engine", "a message of its KV events does not end")


@pytest.fixture
def ports() -> EventPorts:
    """Without replays."""
    (port,) = free_ports(1)
    return EventPorts(port)


async def test_a_message_of_60_mb_is_not_taken_and_costs_the_connection(
    followed: FollowedPod, publisher: Publisher
) -> None:
    await publisher.subscribed()
    await publisher.publish(STORED)
    await until(lambda: followed.precise)
    await publisher.publish(bytes(60_000_000))
    await until(lambda: not followed.precise)


async def test_a_pod_that_publishes_without_end_is_left_alone_with_one_line(
    followed: FollowedPod, publisher: Publisher, caplog: pytest.LogCaptureFixture
) -> None:
    await publisher.subscribed()
    await publisher.publish(STORED)
    await until(lambda: followed.precise)
    number = 1

    async def flood() -> None:
        nonlocal number
        while True:
            # not more at a time than it may, but always as much
            await publisher.send([b"", number.to_bytes(8, "big"), b"\xc1" * (MOST_MESSAGE_BYTES - 8)])
            number += 1
            await asyncio.sleep(0)

    flooding = asyncio.create_task(flood())
    # on a busy machine the last message of all that came may not end in time
    await until(lambda: any(line in caplog.text for line in LEFT_ALONE))
    assert not followed.precise
    flooding.cancel()
    assert sum(caplog.text.count(line) for line in LEFT_ALONE) == 1
    assert number > 1


def _nothing(_number: int, _payload: bytes) -> Generator[int]:
    yield 0


async def _replayed(piece: bytes) -> None:
    (port,) = free_ports(1)
    context = zmq.asyncio.Context()
    router = context.socket(zmq.ROUTER)
    router.bind(f"tcp://{IP}:{port}")

    async def without_end() -> None:
        client, empty, _ = await router.recv_multipart()
        number = 0
        while True:
            await router.send_multipart([client, empty, b"", number.to_bytes(8, "big"), piece])
            number += 1
            await asyncio.sleep(0)

    answering = asyncio.create_task(without_end())
    try:
        await replay(EventEndpoint(IP, port), 0, _nothing, 600.0)
    finally:
        answering.cancel()
        context.destroy(linger=0)


@pytest.mark.parametrize("piece", [b"\x00" * 1_000_000, b""], ids=["bytes", "messages"])
async def test_a_replay_without_end_is_ended(piece: bytes) -> None:
    with pytest.raises(ReplayError, match="more than any engine keeps"):
        await _replayed(piece)


async def test_what_costs_most_to_learn_lets_others_run_and_counts_against_the_rate(
    publisher: Publisher, ports: EventPorts, caplog: pytest.LogCaptureFixture
) -> None:
    """A byte names a block, which an index learns in 10 us: 4 MiB of them would stop the picker for 40 s."""
    turns = 0

    def cut_off() -> bool:
        return "it sends more KV events than any engine" in caplog.text

    async with followed_pod(ports, rate=ByteRate(8_000_000, 0)) as pod:
        await publisher.subscribed()
        await publisher.publish(STORED)
        await until(lambda: pod.precise)
        await publisher.publish(batch(*[stored_event([3] * 60_000, ())] * 20))
        while not cut_off():
            turns += 1
            await asyncio.sleep(0)
        assert not pod.precise
    assert turns > 8_000_000 // BLOCK_BYTES // PART_BLOCKS // 2, "others waited for the whole of it"


async def test_a_pod_that_connects_anew_has_no_new_burst(
    ports: EventPorts, caplog: pytest.LogCaptureFixture
) -> None:
    async with followed_pod(ports, rate=ByteRate(100_000, 0)) as pod:
        view = pod.subscriber._views[POD]
        for caught in (False, True):
            async with running_publisher(IP, ports.port) as publisher:
                await publisher.subscribed()
                await publisher.publish(bytes(60_000))
                await until(lambda: view.expected == 1 or "it sends more" in caplog.text)
                assert ("it sends more KV events than any engine" in caplog.text) is caught


async def test_a_pod_that_does_not_replay_is_asked_less_often(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    port, replay_port = free_ports(2)
    ports = EventPorts(port, replay_port)
    async with running_publisher(IP, port) as publisher, followed_pod(ports) as followed:
        await publisher.subscribed()
        for number in range(10, 402, 2):
            await publisher.send([b"", number.to_bytes(8, "big"), STORED])
        await until(lambda: followed.subscriber._views[POD].expected == 401)
        assert 1 <= caplog.text.count("cannot be asked for a replay") <= 3


async def test_a_pod_that_replays_again_and_again_is_asked_less_often() -> None:
    port, replay_port = free_ports(2)
    ports = EventPorts(port, replay_port)
    async with running_publisher(IP, port, replay_port) as publisher, followed_pod(ports) as followed:
        await publisher.subscribed()
        for number in range(10, 402, 2):
            await publisher.send([b"", number.to_bytes(8, "big"), STORED])
        await until(lambda: followed.subscriber._views[POD].expected == 401)
        assert len(publisher.replays) in (8, 9)
