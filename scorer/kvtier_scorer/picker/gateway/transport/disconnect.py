"""Ends a client's connection, which grpcio has no call for."""

import os
import socket
from contextlib import closing, suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote

_OPEN: Final = Path("/proc/self/fd")
_MAPPED: Final = "::ffff:"
_OPEN_STATES: Final = (1, 8)
"""ESTABLISHED and CLOSE_WAIT, as the first byte of TCP_INFO has them (include/net/tcp_states.h)."""
_INTERNET: Final = (socket.AF_INET, socket.AF_INET6)


def disconnect(peer: str) -> bool:
    """End the connection of a client; the C core finds that it has ended.

    Args:
        peer: The client as grpcio names it: `ipv4:10.0.0.7:33240` or `ipv6:%5B::1%5D:33240`.

    Returns:
        Whether it was still there, and open.
    """
    host, _, port = unquote(peer.partition(":")[2]).rpartition(":")
    wanted = host.strip("[]"), int(port)
    return any(_end_if(int(number), wanted) for number in os.listdir(_OPEN))  # noqa: PTH208 - numbers


def _end_if(descriptor: int, wanted: tuple[str, int]) -> bool:
    # closed meanwhile, no socket, or not connected; the copy stays what it is while it is looked at
    with suppress(OSError), closing(_socket(os.dup(descriptor))) as found:
        if found.family in _INTERNET:
            host, port, *_ = found.getpeername()
            if (host.removeprefix(_MAPPED), port) == wanted:
                if found.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] not in _OPEN_STATES:
                    return False
                found.shutdown(socket.SHUT_RDWR)
                return True
    return False


def _socket(descriptor: int) -> socket.socket:
    try:
        return socket.socket(fileno=descriptor)
    except OSError:
        os.close(descriptor)
        raise
