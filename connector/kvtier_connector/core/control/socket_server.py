"""Serves the control socket: one JSON object a line in, one out, to processes of the same user and of root.

It listens at a path, never at a port: who reaches it is who may enter the engine's container.
"""

import json
import os
import select
import socket
import stat
import struct
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from kvtier_common.errors import MalformedError
from kvtier_common.formats.json_text import parse_json_object
from kvtier_connector.core.control.orders import Verb
from kvtier_connector.errors import SettingError

MOST_LINE_BYTES: Final = 16 << 20
"""Of an order: the token ids of a prompt of a million tokens have 8 MiB."""
MOST_CLIENTS: Final = 8  # at a time; the next ones wait to be accepted
MOST_PREFETCHES: Final = 6
"""Of them; the other places are for orders that somebody gives."""
_MOST_WAITING: Final = 64  # clients that are not accepted yet
_SILENT_S: Final = 10.0  # after which a client that sends nothing is let go of
_LOOK_S: Final = 0.5  # how often the end is looked for
_MOST_PATH_BYTES: Final = 107  # of a socket (unix(7))
_PEER: Final = struct.Struct("3i")  # process, user and group (socket(7), SO_PEERCRED)

IsWanted = Callable[[], bool]
"""Tells whether whoever has given an order still waits for its answer."""
Answer = Callable[[Mapping[str, Any], IsWanted], Mapping[str, Any]]
"""Does an order and returns what is to be said of it. Raises MalformedError: it is none."""


class ControlServer:
    """Serves orders, beginning now."""

    def __init__(self, folder: Path, name: str, answer: Answer) -> None:
        """Listen at a socket of this name in a folder that is made where it is missing.

        Raises SettingError: the folder is another's, open to others, or cannot be used.
        """
        self._answer = answer
        self._path = folder / name
        self._closing = threading.Event()
        self._places = threading.BoundedSemaphore(MOST_CLIENTS)
        self._prefetches = threading.BoundedSemaphore(MOST_PREFETCHES)
        try:
            _make_private(folder)
            self._listener = _listen(self._path)
        except OSError as error:
            raise _bad(folder, error.strerror or str(error)) from error
        self._thread = threading.Thread(target=self._accept, name="kvtier-control", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it; clients that wait for an answer are let go of."""
        self._closing.set()
        self._thread.join()
        self._listener.close()
        with suppress(OSError):
            self._path.unlink()

    def _accept(self) -> None:
        while not self._closing.is_set():
            if not self._places.acquire(timeout=_LOOK_S):
                continue
            try:
                connection, _ = self._listener.accept()
            except OSError:  # nobody came, or whoever came has gone
                self._places.release()
                continue
            threading.Thread(
                target=self._serve, args=(connection,), name="kvtier-control-client", daemon=True
            ).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, suppress(OSError):
                connection.settimeout(_SILENT_S)
                if _user_of(connection) in {os.geteuid(), 0}:  # root can do everything anyway
                    self._converse(connection)
        finally:
            self._places.release()

    def _converse(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as lines:
            while line := lines.readline(MOST_LINE_BYTES + 1):
                answer = self._done(line, partial(_is_there, connection))
                connection.sendall(json.dumps(answer).encode() + b"\n")
                if len(line) > MOST_LINE_BYTES:
                    return  # the rest of it would be taken for other orders

    def _done(self, line: bytes, is_wanted: IsWanted) -> Mapping[str, Any]:
        try:
            fields = parse_json_object(line, most_bytes=MOST_LINE_BYTES)
            if fields.get("verb") != Verb.PREFETCH:
                return self._answer(fields, is_wanted)
            if not self._prefetches.acquire(blocking=False):
                return {"error": f"{MOST_PREFETCHES} prefetches are under way; ask again"}
            try:
                return self._answer(fields, is_wanted)
            finally:
                self._prefetches.release()
        except MalformedError as error:
            return {"error": str(error)}


def _is_there(connection: socket.socket) -> bool:
    """Tell whether the other end has not hung up."""
    poll = select.poll()
    poll.register(connection, 0)  # POLLHUP is always told
    return not poll.poll(0)


def _make_private(folder: Path) -> None:
    """Make a folder that only this user may enter, or see that one is so. Raises SettingError, OSError."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise _bad(folder, "is another user's, or no folder; name one that the engine can make itself")
    if stat.S_IMODE(found.st_mode) & 0o077:
        folder.chmod(0o700)


def _listen(path: Path) -> socket.socket:
    """Listen, in the place of an engine that has ended. Raises SettingError, OSError."""
    if len(os.fsencode(path)) > _MOST_PATH_BYTES:
        raise _bad(path.parent, f"is too long: a socket's path has at most {_MOST_PATH_BYTES} bytes")
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise _bad(path.parent, f"{path.name} is there already, and no socket")
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen(_MOST_WAITING)
        listener.settimeout(_LOOK_S)
    except OSError:
        listener.close()
        raise
    return listener


def _user_of(connection: socket.socket) -> int:
    """Return whose the process at the other end is."""
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    _, user, _ = _PEER.unpack(peer)
    return int(user)


def _bad(folder: Path, why: str) -> SettingError:
    return SettingError(f"kv_connector_extra_config.control_path: {folder}: {why}")
