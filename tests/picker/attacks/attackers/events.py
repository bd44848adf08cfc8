"""A publisher of KV events that sends more than an engine has."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

import msgspec
import zmq
import zmq.asyncio
from tests.picker.attacks.attackers.pods import good_pod
from tests.picker.attacks.attackers.tally import SENT, Tally
from tests.picker.attacks.attackers.target import Target
from zmq.utils.monitor import recv_monitor_message

_Attack: TypeAlias = Callable[[zmq.asyncio.Socket, zmq.asyncio.Socket], Awaitable[None]]
_NUMBER_BYTES: Final = 8
_GREETING: Final = (
    b"\xff" + bytes(8) + b"\x7f" + bytes([3, 1]) + b"NULL".ljust(20, b"\0") + bytes(32)
    + b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB"
)  # fmt: skip
_MIB: Final = 1 << 20
_AHEAD: Final = 1_000
"""Messages that were never sent: a gap, for which the picker asks for a replay."""


@asynccontextmanager
async def replay_without_end(target: Target, tally: Tally, evil: asyncio.Event) -> AsyncIterator[None]:
    """A gap, and a replay of messages of 1 MiB that does not end."""
    part = _stored(1 * _MIB)

    async def attack(events: zmq.asyncio.Socket, replays: zmq.asyncio.Socket) -> None:
        await _publish(events, 0, _stored(1))
        while True:
            await _publish(events, _AHEAD, _stored(1))
            client, empty, _ = await replays.recv_multipart()
            with contextlib.suppress(zmq.ZMQError):  # it has gone
                for number in range(1 << 30):
                    told = number.to_bytes(_NUMBER_BYTES, "big")
                    await replays.send_multipart([client, empty, b"", told, part])
                    tally[SENT] += 1

    async with _publisher(target, tally, evil, attack):
        yield


@asynccontextmanager
async def large_events(target: Target, tally: Tally, evil: asyncio.Event) -> AsyncIterator[None]:
    """Messages of 60 MB, each of as many tokens."""
    async with _publisher(target, tally, evil, _again_and_again(_stored(60_000_000), tally)):
        yield


@asynccontextmanager
async def tiny_blocks(target: Target, tally: Tally, evil: asyncio.Event) -> AsyncIterator[None]:
    """Messages within every bound of bytes, of blocks whose names take one of them each."""
    async with _publisher(target, tally, evil, _again_and_again(_removed(15 * _MIB // 4), tally)):
        yield


@asynccontextmanager
async def large_blocks(target: Target, tally: Tally, evil: asyncio.Event) -> AsyncIterator[None]:
    """Messages within every bound of bytes, of few blocks with many tokens each."""
    tokens = 1 << 16
    events = [_stored_event(number, tokens) for number in range(62)]
    payload = msgspec.msgpack.encode([0.0, events])
    async with _publisher(target, tally, evil, _again_and_again(payload, tally)):
        yield


@asynccontextmanager
async def changing_mind(target: Target, tally: Tally, evil: asyncio.Event) -> AsyncIterator[None]:
    """Holds nothing, and then something that cannot be read: each time it is known anew what it holds."""
    reset = msgspec.msgpack.encode([0.0, [{"type": "AllBlocksCleared"}]])

    async def attack(events: zmq.asyncio.Socket, _: zmq.asyncio.Socket) -> None:
        for number in range(1 << 30):
            await _publish(events, number, b"\xc1" if number % 2 else reset)
            tally[SENT] += 1
            await asyncio.sleep(0.001)

    async with _publisher(target, tally, evil, attack):
        yield


@asynccontextmanager
async def endless_event(target: Target, tally: Tally, evil: asyncio.Event) -> AsyncIterator[None]:
    """One message whose frames of 64 KiB never end: a ZeroMQ library takes all of them in."""
    frame = b"\x03" + (1 << 16).to_bytes(_NUMBER_BYTES, "big") + bytes(1 << 16)

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(_GREETING)
            await evil.wait()
            while True:
                writer.write(frame)
                await writer.drain()
                tally[SENT] += 1
        except OSError:
            tally["closed"] += 1
        finally:
            writer.transport.abort()

    async with await asyncio.start_server(serve, target.pod_ip, target.events_port), good_pod(target):
        yield


def _again_and_again(payload: bytes, tally: Tally) -> _Attack:
    async def attack(events: zmq.asyncio.Socket, _: zmq.asyncio.Socket) -> None:
        for number in range(1 << 30):
            await _publish(events, number, payload)
            tally[SENT] += 1
            await asyncio.sleep(0.05)  # a publisher drops what the subscriber has no room for

    return attack


def _stored(tokens: int) -> bytes:
    """A batch as vLLM's, of one event."""
    return msgspec.msgpack.encode([0.0, [_stored_event(1, tokens, 16)]])


def _stored_event(number: int, tokens: int, block_tokens: int | None = None) -> dict[str, object]:
    return {
        "type": "BlockStored",
        "block_hashes": [number],
        "parent_block_hash": None,
        "token_ids": [number] * tokens,
        "block_size": block_tokens or tokens,
    }


def _removed(blocks: int) -> bytes:
    event = {"type": "BlockRemoved", "block_hashes": [1] * blocks}
    return msgspec.msgpack.encode([0.0, [event]])


async def _publish(events: zmq.asyncio.Socket, number: int, payload: bytes) -> None:
    await events.send_multipart([b"", number.to_bytes(_NUMBER_BYTES, "big"), payload])


@asynccontextmanager
async def _publisher(
    target: Target, tally: Tally, evil: asyncio.Event, attack: _Attack
) -> AsyncIterator[None]:
    context = zmq.asyncio.Context()
    events, replays = context.socket(zmq.PUB), context.socket(zmq.ROUTER)
    events.setsockopt(zmq.SNDHWM, 4)
    replays.setsockopt(zmq.ROUTER_MANDATORY, 1)
    replays.setsockopt(zmq.SNDHWM, 4)
    monitors = [each.get_monitor_socket(zmq.EVENT_DISCONNECTED) for each in (events, replays)]
    events.bind(f"tcp://{target.pod_ip}:{target.events_port}")
    replays.bind(f"tcp://{target.pod_ip}:{target.replay_port}")

    async def run() -> None:
        await evil.wait()
        await attack(events, replays)

    async def count(monitor: zmq.asyncio.Socket) -> None:
        while True:
            await recv_monitor_message(monitor)
            if evil.is_set():
                tally["closed"] += 1

    tasks = [asyncio.create_task(run()), *(asyncio.create_task(count(monitor)) for monitor in monitors)]
    try:
        async with good_pod(target):
            yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        context.destroy(linger=0)
