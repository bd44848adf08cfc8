"""Subscribes to the KV events of every pod."""

import asyncio
import logging
from typing import Final, Self

import zmq
import zmq.asyncio
from zmq.utils.monitor import recv_monitor_message

from kvtier_scorer.picker.kv_events.chains import PodChains
from kvtier_scorer.picker.kv_events.endpoints import EventPorts
from kvtier_scorer.picker.kv_events.replay import ReplayError, replay
from kvtier_scorer.picker.kv_events.view import PodView, TierIndex

_LOG: Final = logging.getLogger(__name__)
_SOCKETS: Final = 1 << 15
"""Three a pod while one asks for a replay; ZeroMQ allows 1,023 if nobody says otherwise."""
_LARGEST_BYTES: Final = 64 << 20
_WAITING_MESSAGES: Final = 10_000
_RECONNECT_MS: Final = 200
_RECONNECT_MAX_MS: Final = 5_000
_HEARTBEAT_MS: Final = 10_000
"""A node that vanished closes no connection: without an answer to a ping for so long it is closed."""
_NUMBER_BYTES: Final = 8
_FRAMES: Final = 3


class Subscriber:
    """The KV events of all pods that are followed; to be entered and left.

    Args:
        index: Learns what the pods hold.
        block_tokens: Tokens of an entry of the index.
        ports: Where pods publish.
    """

    def __init__(self, index: TierIndex, block_tokens: int, ports: EventPorts) -> None:
        self._index = index
        self._block_tokens = block_tokens
        self._ports = ports
        self._context = zmq.asyncio.Context()
        self._context.set(zmq.MAX_SOCKETS, _SOCKETS)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._views: dict[str, PodView] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = list(self._tasks.values())
        for address in tuple(self._tasks):
            self.forget(address)
        await asyncio.gather(*tasks, return_exceptions=True)
        self._context.destroy(linger=0)

    @property
    def precise(self) -> frozenset[str]:
        """Addresses of the pods whose events tell all that they hold."""
        return frozenset(address for address, view in self._views.items() if view.precise)

    def follow(self, address: str, pod: int, rank: int = 0, model: str = "") -> None:
        """Subscribes to a pod from now on; one that is followed already stays as it is.

        Events do not name the model, and hashes depend on it; so a pod is followed when its model is known.

        Args:
            address: `ip:port` under which it is picked.
            pod: Its number in the index.
            rank: Which of the pod's servers it is.
            model: Name under which requests ask for the pod's model.
        """
        if address in self._tasks:
            return
        chains = PodChains(self._block_tokens, model)
        view = self._views[address] = PodView(pod, address, self._index, chains)
        task = asyncio.create_task(self._run(address, rank, view), name=f"KV events of {address}")
        task.add_done_callback(_ended)
        self._tasks[address] = task

    def forget(self, address: str) -> None:
        """Ends the subscription to a pod; the index is not called for it any more."""
        if task := self._tasks.pop(address, None):
            task.cancel()
        self._views.pop(address, None)

    async def _run(self, address: str, rank: int, view: PodView) -> None:
        socket = self._context.socket(zmq.SUB)
        monitor = _connect(socket, self._ports.events(address, rank), self._ports.topic)
        try:
            poller = zmq.asyncio.Poller()
            poller.register(socket, zmq.POLLIN)
            poller.register(monitor, zmq.POLLIN)
            replays = self._ports.replay(address, rank)
            while True:
                await poller.poll()
                # a lost connection comes before what the next one brings
                while await monitor.poll(0):
                    if await _is_lost(monitor):
                        view.restart("the connection to its KV events was lost")
                    else:
                        await self._replay(replays, view)
                if await socket.poll(0):
                    await self._receive(socket, replays, view)
        finally:
            socket.disable_monitor()
            monitor.close(linger=0)
            socket.close(linger=0)

    async def _receive(self, socket: zmq.asyncio.Socket, replays: str | None, view: PodView) -> None:
        frames = await socket.recv_multipart()
        if len(frames) != _FRAMES or len(frames[1]) != _NUMBER_BYTES:
            view.restart("its KV events are not vLLM's")
            return
        number = int.from_bytes(frames[1], "big")
        if view.misses(number):
            await self._replay(replays, view)
        view.live(number, frames[2])

    async def _replay(self, endpoint: str | None, view: PodView) -> None:
        if endpoint is None:
            return
        try:
            view.replayed(await replay(self._context, endpoint, view.expected))
        except ReplayError as error:
            _LOG.info("%s", error)


def _connect(socket: zmq.asyncio.Socket, endpoint: str, topic: str) -> zmq.asyncio.Socket:
    """Connects, and again whenever the connection is lost; returns what tells of both."""
    socket.setsockopt(zmq.IPV6, 1)
    socket.setsockopt(zmq.RCVHWM, _WAITING_MESSAGES)
    socket.setsockopt(zmq.MAXMSGSIZE, _LARGEST_BYTES)
    socket.setsockopt(zmq.RECONNECT_IVL, _RECONNECT_MS)
    socket.setsockopt(zmq.RECONNECT_IVL_MAX, _RECONNECT_MAX_MS)
    socket.setsockopt(zmq.HEARTBEAT_IVL, _HEARTBEAT_MS)
    socket.setsockopt(zmq.SUBSCRIBE, topic.encode())
    monitor: zmq.asyncio.Socket = socket.get_monitor_socket(
        zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_SUCCEEDED
    )
    socket.connect(endpoint)
    return monitor


async def _is_lost(monitor: zmq.asyncio.Socket) -> bool:
    told = await recv_monitor_message(monitor)
    return bool(told["event"] == zmq.EVENT_DISCONNECTED)


def _ended(task: asyncio.Task[None]) -> None:
    """A subscription ends by being cancelled, or by a fault of ours that must not go unseen."""
    if not task.cancelled() and (error := task.exception()):
        _LOG.error("%s ended: %r", task.get_name(), error, exc_info=error)
