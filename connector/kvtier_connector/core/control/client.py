"""Asks an engine over its control socket."""

import json
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kvtier_common.errors import KvtierError, MalformedError
from kvtier_common.formats.json_text import parse_json_object

_MOST_BYTES: Final = 16 << 20  # of an answer
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
            connection.connect(str(path))
            connection.sendall(json.dumps(order).encode() + b"\n")
            with connection.makefile("rb") as lines:
                line = lines.readline(_MOST_BYTES + 1)
        if not line.endswith(b"\n"):
            raise ControlError(f"{path}: the engine has ended the connection")
        return parse_json_object(line, most_bytes=_MOST_BYTES)
    except (OSError, MalformedError) as error:
        raise ControlError(f"{path}: {error}") from error
