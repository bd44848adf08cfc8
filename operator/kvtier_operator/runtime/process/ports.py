"""TCP ports of this machine."""

import errno
import os
import socket
from collections import deque
from typing import Final

from kvtier_operator.errors import RuntimeFailedError

LOOPBACK: Final = "127.0.0.1"


# More than anything here asks for at a time.
_MOST_HELD: Final = 256
_held: Final[deque[int]] = deque()


def free_ports(count: int, host: str) -> tuple[int, ...]:
    """`count` different ports of `host` for programs that are started later and cannot choose their own.

    They stay bound here, without anybody listening, for as long as this process lives or until it has asked
    for many others: the kernel gives them to nobody who does not ask for them by number. A program that does
    gets them, as long as it sets SO_REUSEADDR, as servers do (Linux, socket(7)).
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = []
    for _ in range(count):
        with socket.socket(family) as bound:
            bound.bind((host, 0))
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.append(int(bound.getsockname()[1]))
            _held.append(bound.detach())
    while len(_held) > _MOST_HELD:
        os.close(_held.popleft())
    return tuple(found)


def numeric(host: str) -> str:
    """The address of a host's name; an address stays as it is.

    Raises:
        RuntimeFailedError: The name is not known.
    """
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        raise RuntimeFailedError(f"cannot listen on {host}: {error.strerror}") from error


def require_free(host: str, port: int) -> None:
    """Make sure that a server could listen on `host`:`port` now.

    Raises:
        RuntimeFailedError: Something listens there already, or the address is not this machine's.
    """
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise RuntimeFailedError(
                f"port {port} is in use on {host}: stop what listens there or choose another with --port"
            ) from error
        raise RuntimeFailedError(f"cannot listen on {host}:{port}: {error.strerror}") from error
