"""A connection to one server of the Redis protocol: commands out, replies in, values past all buffers."""

import time
from collections import deque
from collections.abc import Sequence
from typing import Final

from kvtier_common.one_line import one_line
from kvtier_connector.core.remote.resp import replies
from kvtier_connector.core.remote.resp.wire import Wire, after, left_s
from kvtier_connector.core.remote.store import ServerFacts, Value
from kvtier_connector.errors import RemoteError, RemoteTimeoutError

Reply = bytes | int | None | list["Reply"]
_READ_BYTES: Final = 64 << 10
_LINE_BYTES: Final = 1 << 10  # no line that is waited for comes near it
_BULK_BYTES: Final = 1 << 20  # of INFO, and of a cluster's map
_DIGITS: Final = 20  # of any number of bytes or keys
_MOST_SHOWN: Final = 40  # characters of what a server says of itself
_DEPTH: Final = 6  # of arrays in arrays


class RespConnection:
    """A StoreConnection to one server, over a wire that it owns."""

    def __init__(self, wire: Wire, peer: str, request_timeout_s: float) -> None:
        self.peer = peer
        """What errors call the server."""
        self._wire = wire
        self._request_timeout_s = request_timeout_s
        self._requested = deque[Value]()
        self._ahead = bytearray()  # what was received and not read yet: never more than the server owed
        self._end = memoryview(bytearray(len(replies.CRLF)))  # of a value
        self._closed = False
        self.is_outdated = self.is_moving = False
        """Whether it was asked for keys that another server has, or is being given."""

    def sizes(self, keys: Sequence[bytes], timeout_s: float) -> list[int]:
        """Return the values' lengths, by one pipeline."""
        deadline_s = time.monotonic() + timeout_s
        self.ask_sizes(keys, timeout_s)
        return self.answered_sizes(len(keys), max(0.0, deadline_s - time.monotonic()))

    def ask_sizes(self, keys: Sequence[bytes], timeout_s: float) -> None:
        """Send the first half of `sizes`."""
        with self._within(timeout_s) as deadline_s:
            self._send_all([replies.command(b"STRLEN", key) for key in keys], deadline_s)

    def answered_sizes(self, count: int, timeout_s: float) -> list[int]:
        """Receive the second half of `sizes`."""
        with self._within(timeout_s) as deadline_s:
            return [self._size(line) for line in self._lines(count, deadline_s)]

    def _size(self, line: bytes) -> int:
        """A key of another server is absent here, and says nothing of those beside it."""
        self.is_outdated |= line.startswith(b"-MOVED ")
        self.is_moving |= line.startswith(b"-ASK ")
        return 0 if line.startswith((b"-MOVED ", b"-ASK ")) else replies.number(self.peer, line)

    def request(self, value: Value) -> None:
        """Ask for a value."""
        with self._within(self._request_timeout_s) as deadline_s:
            self._send([memoryview(replies.get_command(value.key))], deadline_s)
            self._requested.append(value)

    def receive(self, timeout_s: float) -> bool:
        """Receive what was requested first."""
        with self._within(timeout_s) as deadline_s:
            if not self._requested:
                raise ValueError("nothing is requested")
            value = self._requested.popleft()
            head = replies.size_line(value.size_bytes)
            # no more than the line that is waited for, so that the value is not in a buffer
            while len(self._ahead) < len(head) and replies.CRLF not in self._ahead:
                self._ahead += self._wire.read(len(head) - len(self._ahead), deadline_s)
            if not self._ahead.startswith(head):
                self._pass_over(deadline_s)
                return False
            del self._ahead[: len(head)]
            self._fill([*value.memory, self._end], deadline_s)
            if self._end.tobytes() != replies.CRLF:
                raise replies.refusal(self.peer, b"")
            return True

    def put(self, value: Value, ttl_s: int, timeout_s: float) -> None:
        """Store a value."""
        with self._within(timeout_s) as deadline_s:
            self._check_nothing_requested()
            before, behind = replies.set_command(value.key, value.size_bytes, ttl_s)
            self._send([memoryview(before), *value.memory, memoryview(behind)], deadline_s)
            self._expect_ok(deadline_s)

    def delete(self, keys: Sequence[bytes], timeout_s: float) -> None:
        """Remove values."""
        with self._within(timeout_s) as deadline_s:
            self._send_all([replies.command(b"DEL", key) for key in keys], deadline_s)
            for line in self._lines(len(keys), deadline_s):
                replies.number(self.peer, line)

    def facts(self, timeout_s: float) -> ServerFacts:
        """Ask the server what it is and holds."""
        said = self.info(timeout_s)
        product = "Valkey" if "valkey_version" in said else "Redis"
        return ServerFacts(
            version=one_line(f"{product} {said.get('valkey_version', said['redis_version'])}", _MOST_SHOWN),
            maxmemory_bytes=_whole(said, "maxmemory"),
            used_bytes=_whole(said, "used_memory"),
            policy=one_line(said.get("maxmemory_policy", ""), _MOST_SHOWN),
            evicted_keys=_whole(said, "evicted_keys"),
        )

    def info(self, timeout_s: float) -> dict[str, str]:
        """Return what INFO says, by name."""
        said = self.ask(b"INFO", timeout_s=timeout_s)
        info = replies.fields(said) if isinstance(said, bytes) else {}
        if "redis_version" not in info:  # which Valkey says, too
            self.close()
            raise replies.refusal(self.peer, b"")
        return info

    def ask(self, *words: bytes, timeout_s: float) -> Reply:
        """Send a command and return its reply, which is small. Raises RemoteError: it is an error's."""
        with self._within(timeout_s) as deadline_s:
            self._check_nothing_requested()
            self._send([memoryview(replies.command(*words))], deadline_s)
            return self._reply(deadline_s)

    def close(self) -> None:
        """Close the socket."""
        self._closed = True
        self._requested.clear()
        self._wire.close()

    def fail(self, error: BaseException, timeout_s: float) -> None:
        """Close, and raise what the error is to the caller."""
        self.close()
        if isinstance(error, TimeoutError):
            raise RemoteTimeoutError(f"{self.peer}: no answer within {timeout_s:.3g} s") from error
        if isinstance(error, OSError):
            if self._ahead.startswith(b"-"):  # its reason, such as too many clients
                raise replies.refusal(self.peer, bytes(self._ahead).splitlines()[0]) from error
            raise RemoteError(f"{self.peer}: {error.strerror or error}") from error

    def _within(self, timeout_s: float) -> "_Within":
        if self._closed:
            raise RemoteError(f"{self.peer}: the connection is closed")
        return _Within(self, timeout_s)

    def _check_nothing_requested(self) -> None:
        if self._requested:
            raise ValueError("what is requested has to be received first")

    def _send_all(self, commands: Sequence[bytes], deadline_s: float) -> None:
        """Send commands in one piece."""
        self._check_nothing_requested()
        self._send([memoryview(b"".join(commands))], deadline_s)

    def _send(self, pieces: Sequence[memoryview], deadline_s: float) -> None:
        self._wire.write(pieces, deadline_s)

    def _expect_ok(self, deadline_s: float) -> None:
        line = self._line(deadline_s)
        if line != b"+OK":
            raise replies.refusal(self.peer, line)

    def _lines(self, count: int, deadline_s: float) -> list[bytes]:
        """Read lines, and what comes with them."""
        return [self._line(deadline_s) for _ in range(count)]

    def _line(self, deadline_s: float) -> bytes:
        searched = 0
        while (end := self._ahead.find(replies.CRLF, searched)) < 0:
            if len(self._ahead) > _LINE_BYTES:
                raise replies.refusal(self.peer, b"")
            searched = max(0, len(self._ahead) - 1)
            self._ahead += self._wire.read(_READ_BYTES, deadline_s)
        if end > _LINE_BYTES:
            raise replies.refusal(self.peer, b"")
        line = bytes(self._ahead[:end])
        del self._ahead[: end + len(replies.CRLF)]
        return line

    def _fill(self, memory: Sequence[memoryview], deadline_s: float) -> None:
        """Read as many bytes as the memory has, beginning with those that came with a line."""
        while memory and self._ahead:
            size = min(memory[0].nbytes, len(self._ahead))
            memory[0][:size] = self._ahead[:size]
            del self._ahead[:size]
            memory = after(memory, size)
        self._wire.fill(memory, deadline_s)

    def _pass_over(self, deadline_s: float) -> None:
        """Read a reply that is not the value that was asked for: none, or of another length."""
        line = self._line(deadline_s)
        if line == replies.NIL:
            return
        left = _length(self.peer, line) + len(replies.CRLF)
        while left > 0:
            left_s(deadline_s)  # as long as a server likes: what comes at once is no reason to go on
            if not self._ahead:
                self._ahead += self._wire.read(min(left, _READ_BYTES), deadline_s)
            size = min(left, len(self._ahead))
            del self._ahead[:size]
            left -= size

    def _reply(self, deadline_s: float, depth: int = 0) -> Reply:
        if depth:
            left_s(deadline_s)  # what has come already is no reason to go on reading it
        line = self._line(deadline_s)
        kind, said = line[:1], line[1:]
        if kind == b"+":
            return said
        if kind == b":":
            return replies.number(self.peer, line)
        if kind == b"*" and said.isdigit() and int(said) <= _BULK_BYTES and depth < _DEPTH:
            return [self._reply(deadline_s, depth + 1) for _ in range(int(said))]
        if line in {replies.NIL, b"*-1"}:
            return None
        size_bytes = _length(self.peer, line)
        if size_bytes > _BULK_BYTES:
            raise replies.refusal(self.peer, b"")
        text = bytearray(size_bytes + len(replies.CRLF))
        self._fill([memoryview(text)], deadline_s)
        return bytes(text[:size_bytes])


class _Within:
    """The time of a call, as its deadline; whatever goes wrong meanwhile closes the connection."""

    __slots__ = ("_connection", "_timeout_s")

    def __init__(self, connection: RespConnection, timeout_s: float) -> None:
        self._connection = connection
        self._timeout_s = timeout_s

    def __enter__(self) -> float:
        return time.monotonic() + self._timeout_s

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error:
            self._connection.fail(error, self._timeout_s)


def _length(peer: str, line: bytes) -> int:
    if not line.startswith(b"$") or not line[1:].isdigit():
        raise replies.refusal(peer, line)
    return int(line[1:])


def _whole(said: dict[str, str], name: str) -> int:
    value = said.get(name, "")
    return int(value) if value.isdecimal() and len(value) < _DIGITS else 0
