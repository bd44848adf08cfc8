"""Asks an engine over its control socket."""

import json
import re
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kvtier_common.errors import KvtierError, MalformedError
from kvtier_common.formats.json_text import parse_json_object

_MOST_BYTES: Final = 16 << 20  # of an answer
_AGAIN_S: Final = 0.05  # after which an engine is asked again that has too many clients
_NAME: Final = re.compile(r"engine-(\d+)\.sock")


class ControlError(KvtierError):
    """An engine does not answer at its socket; one line."""


def socket_name(rank: int) -> str:
    """Return the name of an engine's socket by its data-parallel rank."""
    return f"engine-{rank}.sock"


def sockets_in(folder: Path) -> list[Path]:
    """Return the sockets of the engines that listen in a folder, by rank; none if there is no such folder."""
    found = {path: _NAME.fullmatch(path.name) for path in (folder.iterdir() if folder.is_dir() else ())}
    named = [(int(match[1]), path) for path, match in found.items() if match]
    return [path for _, path in sorted(named)]


def ask(path: Path, order: Mapping[str, Any], *, timeout_s: float) -> dict[str, Any]:
    """Send an order and return the answer. Raises ControlError."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout_s)
            _connect(connection, path, timeout_s)
            connection.sendall(json.dumps(order).encode() + b"\n")
            with connection.makefile("rb") as lines:
                line = lines.readline(_MOST_BYTES + 1)
        if not line.endswith(b"\n"):
            raise ControlError(f"{path}: the engine has ended the connection")
        return parse_json_object(line, most_bytes=_MOST_BYTES)
    except (OSError, MalformedError) as error:
        raise ControlError(f"{path}: {error}") from error


def _connect(connection: socket.socket, path: Path, timeout_s: float) -> None:
    """Connect, once there is a place among the clients that wait. Raises OSError."""
    until_s = time.monotonic() + timeout_s
    while True:
        try:
            connection.connect(str(path))
        except BlockingIOError:  # unix(7): of a socket with a timeout it is not waited for
            if time.monotonic() > until_s:
                raise
            time.sleep(_AGAIN_S)
        else:
            return
