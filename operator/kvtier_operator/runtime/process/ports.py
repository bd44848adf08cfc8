"""TCP ports of this machine."""

import errno
import socket
from contextlib import ExitStack
from typing import Final

from kvtier_operator.errors import RuntimeFailedError

LOOPBACK: Final = "127.0.0.1"


def free_ports(count: int, host: str) -> tuple[int, ...]:
    """`count` different ports of `host` that nothing listens on now; nothing keeps them reserved."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server((host, 0))) for _ in range(count)]
        return tuple(int(bound.getsockname()[1]) for bound in sockets)


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
