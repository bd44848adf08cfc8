"""Publishes KV events over ZeroMQ as vLLM does (vllm/distributed/kv_events.py: ZmqEventPublisher)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import zmq
import zmq.asyncio

_NUMBER_BYTES: Final = 8
_END: Final = (-1).to_bytes(_NUMBER_BYTES, "big", signed=True)


class Publisher:
    """One engine's publisher; its messages are numbered from 0.

    Attributes:
        number: Of the message that comes next.
        buffer: Messages that it can replay, by number.
        replays: Where replays were asked to begin.
    """

    def __init__(self, events: zmq.asyncio.Socket) -> None:
        self.number = 0
        self.buffer: dict[int, bytes] = {}
        self.replays: list[int] = []
        self._events = events

    async def subscribed(self) -> None:
        """Returns when a subscriber is there: what is published before, it does not get."""
        async with asyncio.timeout(30):
            while (await self._events.recv())[:1] != b"\x01":
                pass

    async def publish(self, payload: bytes, *, lost: bool = False) -> None:
        """Publishes a message, or loses it on its way."""
        number, self.number = self.number, self.number + 1
        self.buffer[number] = payload
        if not lost:
            await self.send([b"", number.to_bytes(_NUMBER_BYTES, "big"), payload])

    async def send(self, message: list[bytes]) -> None:
        """Sends whatever it is."""
        await self._events.send_multipart(message)

    async def serve_replays(self, socket: zmq.asyncio.Socket) -> None:
        """Answers those who have missed something."""
        while True:
            client, empty, first = await socket.recv_multipart()
            self.replays.append(int.from_bytes(first, "big"))
            for number, payload in self.buffer.items():
                if number >= self.replays[-1]:
                    told = number.to_bytes(_NUMBER_BYTES, "big")
                    await socket.send_multipart([client, empty, b"", told, payload])
            await socket.send_multipart([client, empty, b"", _END, b""])


@asynccontextmanager
async def running_publisher(ip: str, port: int, replay_port: int | None = None) -> AsyncIterator[Publisher]:
    """A publisher on those ports of loopback; without `replay_port` it has no replays."""
    context = zmq.asyncio.Context()
    # an XPUB socket is a PUB socket that tells who subscribes
    events = context.socket(zmq.XPUB)
    events.bind(f"tcp://{ip}:{port}")
    publisher = Publisher(events)
    tasks = []
    if replay_port is not None:
        replays = context.socket(zmq.ROUTER)
        replays.bind(f"tcp://{ip}:{replay_port}")
        tasks.append(asyncio.create_task(publisher.serve_replays(replays)))
    try:
        yield publisher
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        context.destroy(linger=0)
