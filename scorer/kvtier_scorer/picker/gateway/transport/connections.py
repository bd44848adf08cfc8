"""Connections of gateways: how many fit, when no more can come, how one is ended, which reset their calls.

Many calls that a client resets before they are answered are rapid reset (CVE-2023-44487).
"""

import asyncio
import logging
import os
import resource
import socket
from collections import OrderedDict
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from kvtier_scorer.picker.gateway.transport.server import CONNECTIONS

_OPEN: Final = Path("/proc/self/fd")
_SHARE: Final = 2
"""Half is kept for health checks, and for what the picker asks of pods and of the API server."""
_LOG: Final = logging.getLogger(__name__)
_CHECK_INTERVAL_S: Final = 1.0
_LOGGED_EVERY: Final = 60  # looks between two tellings, while it lasts
_MAPPED: Final = "::ffff:"
_OPEN_STATES: Final = (1, 8)
"""ESTABLISHED and CLOSE_WAIT, as the first byte of TCP_INFO has them (include/net/tcp_states.h)."""
_INTERNET: Final = (socket.AF_INET, socket.AF_INET6)


def raise_limit() -> int:
    """Raises the soft limit of open descriptors to the hard one, and returns it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def connections_within(descriptors: int) -> int:
    """Connections of gateways that a process with so many descriptors takes."""
    if descriptors == resource.RLIM_INFINITY:
        return CONNECTIONS
    return max(1, min(CONNECTIONS, descriptors // _SHARE))


def open_descriptors() -> int:
    """How many are open now."""
    return len(os.listdir(_OPEN))  # noqa: PTH208 - a second's look, without an object for each


async def warn_when_full(
    connections: int,
    count_descriptors: Callable[[], int] = open_descriptors,
    check_interval_s: float = _CHECK_INTERVAL_S,
) -> None:
    """Log, until it is cancelled, that so many connections are open that further ones are refused.

    grpcio tells no number of connections; the descriptors since the start are that and a few of our own.
    """
    before = count_descriptors()
    quiet = 0
    while True:
        await asyncio.sleep(check_interval_s)
        quiet -= 1
        if quiet <= 0 and count_descriptors() - before >= connections:
            quiet = _LOGGED_EVERY
            _LOG.warning(
                "%d connections are open, as many as are taken: further ones are refused; "
                "raise the limit of open files, or find out who opens them",
                connections,
            )


def disconnect(peer: str) -> bool:
    """End the connection of a client, of which the C core learns; whether it was still there, and open.

    grpcio names the client as `ipv4:10.0.0.7:33240` or `ipv6:%5B::1%5D:33240`.
    """
    host, _, port = unquote(peer.partition(":")[2]).rpartition(":")
    wanted = host.strip("[]"), int(port)
    return any(_end_if(int(number), wanted) for number in os.listdir(_OPEN))  # noqa: PTH208 - numbers


def _end_if(descriptor: int, wanted: tuple[str, int]) -> bool:
    # closed meanwhile, no socket, or not connected; the copy stays what it is while it is looked at
    with suppress(OSError), closing(_socket(os.dup(descriptor))) as connection:
        if connection.family in _INTERNET:
            host, port, *_ = connection.getpeername()
            if (host.removeprefix(_MAPPED), port) == wanted:
                if connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] not in _OPEN_STATES:
                    return False
                connection.shutdown(socket.SHUT_RDWR)
                return True
    return False


def _socket(descriptor: int) -> socket.socket:
    try:
        return socket.socket(fileno=descriptor)
    except OSError:
        os.close(descriptor)
        raise


# Streams that are reset cost a client nothing and the picker a call each. The rule is Envoy's
# (overload.premature_reset_total_stream_count), with a lower number: a call costs more here. Calls of such a
# connection are held: one that has no stream left costs the picker nothing, for only the C core sees what its
# client sends further, and refuses it (REFUSED_STREAM). Closed at once, it would be opened anew.
CALLS: Final = 20
"""Of one connection, before it can be suspect; Envoy has 500. Half are enough where all are resets."""
_RESET_SHARE: Final = 2
BRIEF_S: Final = 1.0  # a call that has been open for longer is one that its client gave up: Envoy's time, too
_PEERS: Final = 4096  # more connections than there may be at a time


class PrematureResets:
    """Counts the calls of each connection, and those of them that were reset; keeps the latest."""

    def __init__(self, most_peers: int = _PEERS) -> None:
        self._most_peers = most_peers
        self._counts: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def is_suspect(self, peer: str) -> bool:
        """Whether a client, by its address and port, reset half of its calls, and of CALLS at least."""
        calls, resets = self._counts.get(peer, (0, 0))
        return resets * _RESET_SHARE >= max(calls, CALLS)

    def count_call(self, peer: str, *, premature: bool) -> None:
        """Count a call that has ended; `premature`: its client reset it before it was answered, and soon."""
        calls, resets = self._counts.pop(peer, (0, 0))
        self._counts[peer] = calls + 1, resets + premature
        if len(self._counts) > self._most_peers:
            self._counts.popitem(last=False)

    def forget(self, peer: str) -> None:
        """Its port may be another client's next."""
        self._counts.pop(peer, None)


@dataclass(frozen=True, slots=True)
class HoldLimits:
    """How long calls are held, from the first on until the connection is looked at again, and how many.

    Of all connections together: some 25 KiB each; further ones are not held.
    """

    hold_s: float = 10.0
    calls: int = 4_096


class HeldCalls:
    """The calls that are held, by connection; `on_released` gets each once it was held long enough."""

    def __init__(self, limits: HoldLimits, on_released: Callable[[str], None]) -> None:
        self._limits = limits
        self._on_released = on_released
        self._held: dict[str, asyncio.Event] = {}
        self._calls = 0

    @property
    def is_full(self) -> bool:
        """Whether no further call can be held."""
        return self._calls >= self._limits.calls

    async def hold(self, peer: str) -> None:
        """Do not return, also when cancelled, before the calls of a connection (`ip:port`) are released."""
        held = self._held.get(peer)
        if held is None:
            held = self._held[peer] = asyncio.Event()
            asyncio.get_running_loop().call_later(self._limits.hold_s, self._release, peer, held)
        self._calls += 1
        try:
            while not held.is_set():
                with suppress(asyncio.CancelledError):
                    await held.wait()
        finally:
            self._calls -= 1

    def release(self) -> None:
        """Let every call end."""
        for held in self._held.values():
            held.set()

    def _release(self, peer: str, held: asyncio.Event) -> None:
        del self._held[peer]
        if not held.is_set():
            held.set()
            self._on_released(peer)
