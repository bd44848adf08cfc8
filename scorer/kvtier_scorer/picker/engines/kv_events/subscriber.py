"""Subscribes to the KV events of every pod, and asks for those that were missed."""

import asyncio
import logging
import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Final, Self

from kvtier_common.backoff import doubled_s
from kvtier_scorer.picker.engines import pod_task
from kvtier_scorer.picker.engines.kv_events.chains import PodChains
from kvtier_scorer.picker.engines.kv_events.limits import (
    BLOCK_BYTES,
    LARGE_MESSAGES,
    MOST_REPLAY_BYTES,
    MOST_REPLAYED,
    ByteRate,
    HeldBlocks,
    PodLimits,
    PodLimitsByAddress,
    most_blocks,
)
from kvtier_scorer.picker.engines.kv_events.pod_view import PodView, TierIndex
from kvtier_scorer.picker.engines.kv_events.zmtp import Connection, ZmtpError, connection_to

TIMEOUT_S: Final = 2.0
_NUMBER_BYTES: Final = 8
_END: Final = -1
_REPLAY_FRAMES: Final = 4  # what a REQ socket would strip, the topic, the number, the payload
_LOG: Final = logging.getLogger(__name__)
_REPLAYS: Final = 4  # at a time: each may hold a message of 4 MiB
_RECONNECT_S: Final = 0.2
_RECONNECT_MAX_S: Final = 5.0
_FRAMES: Final = 3
_RATE: Final = ByteRate()


@dataclass(frozen=True, slots=True)
class EventEndpoint:
    """A ZeroMQ endpoint, by its IP address."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"tcp://[{self.host}]:{self.port}" if ":" in self.host else f"tcp://{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class EventPorts:
    """How the publishers are configured, the same on every pod (vllm/config/kv_events.py).

    The ports are those of rank 0: a pod that serves several ports runs a data-parallel rank behind each, and
    vLLM adds the rank to both. Without a replay port missed events cannot be asked for again.
    """

    port: int = 5557
    replay_port: int | None = None
    topic: str = ""

    def events(self, address: str, rank: int) -> EventEndpoint:
        """The ZeroMQ endpoint of the events of the pod at `address` (`ip:port`)."""
        return _endpoint(address, self.port + rank)

    def replay(self, address: str, rank: int) -> EventEndpoint | None:
        """The ZeroMQ endpoint of its replays."""
        return None if self.replay_port is None else _endpoint(address, self.replay_port + rank)


def _endpoint(address: str, port: int) -> EventEndpoint:
    return EventEndpoint(address.rpartition(":")[0].removeprefix("[").removesuffix("]"), port)


async def in_steps(work: Generator[int], count: Callable[[int], None] = lambda _: None) -> None:
    """Runs work to its end, or closes it at once; `count` is told of each step, and may end it by raising."""
    with closing(work):
        for done in work:
            count(done)
            await asyncio.sleep(0)


class ReplayError(Exception):
    """The publisher did not replay; the message says why, in one line."""


async def replay(
    endpoint: EventEndpoint,
    first: int,
    take: Callable[[int, bytes], Generator[int]],
    timeout_s: float = TIMEOUT_S,
) -> None:
    """Takes the messages from number `first` on that the publisher still has, in their order.

    `take` gets each message's number and payload as it comes, in steps: all of them are never held. Raises
    ReplayError: it cannot be reached, does not end in time or in bounds, or answers something else. What was
    taken until then stays.
    """
    try:
        async with (
            asyncio.timeout(timeout_s),
            connection_to(endpoint.host, endpoint.port, "DEALER", asyncio.Semaphore()) as connection,
        ):
            connection.send(b"", first.to_bytes(_NUMBER_BYTES, "big"))
            await _take_all(connection, endpoint, take)
    except TimeoutError as error:
        raise ReplayError(f"{endpoint} does not replay within {timeout_s:g} s") from error
    except (OSError, EOFError, ZmtpError) as error:
        raise ReplayError(f"{endpoint} cannot be asked for a replay: {error}") from error


async def _take_all(
    connection: Connection, endpoint: EventEndpoint, take: Callable[[int, bytes], Generator[int]]
) -> None:
    size_bytes = count = 0
    while size_bytes <= MOST_REPLAY_BYTES and count <= MOST_REPLAYED:
        async with connection.message() as frames:
            count += 1
            size_bytes += sum(map(len, frames))
            if not frames:
                continue
            if len(frames) != _REPLAY_FRAMES or len(frames[2]) != _NUMBER_BYTES:
                raise ReplayError(f"{endpoint} answers a replay with something else")
            number = int.from_bytes(frames[2], "big", signed=True)
            if number == _END:
                return
            await in_steps(take(number, frames[3]))
        await asyncio.sleep(0)
    raise ReplayError(f"{endpoint} replays more than any engine keeps")


class _EnoughError(Exception):
    """A pod is not listened to for a while; the message says why, in one line."""


class Subscriber:
    """The KV events of all pods that are followed; to be entered and left.

    The index learns what the pods hold, in entries of `block_tokens`.
    """

    def __init__(
        self, index: TierIndex, block_tokens: int, ports: EventPorts, rate: ByteRate = _RATE
    ) -> None:
        self._index = index
        self._block_tokens = block_tokens
        self._ports = ports
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._views: dict[str, PodView] = {}
        self._limits_by_address = PodLimitsByAddress(rate, time.monotonic)
        self._large_messages = asyncio.Semaphore(LARGE_MESSAGES)
        self._blocks = HeldBlocks(most_blocks())
        self._replaying = asyncio.Semaphore(_REPLAYS)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = list(self._tasks.values())
        for address in tuple(self._tasks):
            self.forget(address)
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def precise(self) -> frozenset[str]:
        """Addresses of the pods whose events tell all that they hold."""
        return frozenset(address for address, view in self._views.items() if view.precise)

    def follow(self, address: str, pod: int, rank: int = 0, model: str = "") -> None:
        """Subscribes to a pod from now on; one that is followed already stays as it is.

        Events do not name the model, and hashes depend on it; so a pod is followed when its model is known.
        `pod` is its number in the index, `rank` which of the pod's servers it is.
        """
        if address in self._tasks:
            return
        chains = PodChains(self._block_tokens, model)
        view = self._views[address] = PodView(pod, address, self._index, chains, self._blocks)
        limits = self._limits_by_address.follow(address)
        self._tasks[address] = pod_task(
            self._run(address, rank, view, limits), name=f"KV events of {address}"
        )

    def forget(self, address: str) -> None:
        """Ends the subscription to a pod; the index is not called for it any more."""
        if task := self._tasks.pop(address, None):
            task.cancel()
            self._limits_by_address.forget(address)
        if view := self._views.pop(address, None):
            view.end()

    async def _run(self, address: str, rank: int, view: PodView, limits: PodLimits) -> None:
        """Listens to a pod; leaves it alone for a while, longer each time, where it sends too much."""
        events, replays = self._ports.events(address, rank), self._ports.replay(address, rank)
        failures = 0
        while True:
            await asyncio.sleep(max(0.0, limits.resume_s - time.monotonic()))
            began_s = time.monotonic()
            try:
                await self._listen(events, replays, view, limits)
            except (_EnoughError, ZmtpError) as error:
                limits.on_excess(began_s, time.monotonic())
                if limits.excesses == 1:
                    _LOG.warning("pod %s: %s; it stays approximate", address, error)
                view.restart("its KV events are not listened to")
            except (OSError, EOFError):
                failures = 0 if time.monotonic() - began_s > _RECONNECT_MAX_S else failures + 1
                view.restart("the connection to its KV events was lost")
                await asyncio.sleep(doubled_s(_RECONNECT_S, _RECONNECT_MAX_S, failures))

    async def _listen(
        self, events: EventEndpoint, replays: EventEndpoint | None, view: PodView, limits: PodLimits
    ) -> None:
        """Listens on one connection until it is lost."""
        async with connection_to(events.host, events.port, "SUB", self._large_messages) as connection:
            connection.send(b"\x01" + self._ports.topic.encode())
            await self._replay(replays, view, limits)
            while not view.given_up:
                async with connection.message() as frames:
                    _count(limits, sum(map(len, frames)))
                    if frames:
                        await self._receive(frames, replays, view, limits)
                await asyncio.sleep(0)
            raise _EnoughError("its KV events are of no use")

    async def _receive(
        self, frames: list[bytes], replays: EventEndpoint | None, view: PodView, limits: PodLimits
    ) -> None:
        if len(frames) != _FRAMES or len(frames[1]) != _NUMBER_BYTES:
            view.restart("its KV events are not vLLM's")
            return
        number = int.from_bytes(frames[1], "big")
        view.notice_restart(number)
        if view.misses(number):
            await self._replay(replays, view, limits)
        await in_steps(view.apply_live(number, frames[2]), lambda done: _count(limits, done * BLOCK_BYTES))

    async def _replay(self, endpoint: EventEndpoint | None, view: PodView, limits: PodLimits) -> None:
        """Asks for what was missed, less and less often where that fails, and never without end."""
        now_s = time.monotonic()
        if endpoint is None or not limits.may_replay(now_s):
            return
        limits.begin_replay(now_s)
        try:
            async with self._replaying:
                await replay(endpoint, view.expected, view.apply_replayed)
            limits.on_replayed()
        except ReplayError as error:
            limits.on_replay_failed(time.monotonic())
            _LOG.log(logging.INFO if limits.replay_failures == 1 else logging.DEBUG, "%s", error)


def _count(limits: PodLimits, size_bytes: int) -> None:
    """Counts what a pod sent; raises _EnoughError: it is more than it may send."""
    limits.rate_limiter.consume(size_bytes)
    if limits.rate_limiter.is_exceeded:
        raise _EnoughError("it sends more KV events than any engine")
