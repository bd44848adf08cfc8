"""Connections of gateways: how many fit, when no more can come, and how one is ended."""

import asyncio
import logging
import os
import resource
import socket
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from kvtier_scorer.picker.gateway.transport.limits import CONNECTIONS

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

    Args:
        peer: The client as grpcio names it: `ipv4:10.0.0.7:33240` or `ipv6:%5B::1%5D:33240`.
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
