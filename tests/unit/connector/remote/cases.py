"""Values in pieces of memory."""

import random
import select
from collections.abc import Sequence
from itertools import pairwise

from kvtier_connector.core.remote.resp.connection import RespConnection
from kvtier_connector.core.remote.resp.wire import PlainWire, TlsWire
from kvtier_connector.core.remote.store import Value

MIB = 1 << 20
UNTOUCHED = 0xEE


def value_of(key: bytes, size_bytes: int, pieces: int = 3) -> Value:
    """A value of bytes that are its own, in pieces that lie apart."""
    content = random.Random(key).randbytes(size_bytes)  # noqa: S311 - any bytes do
    return Value(key, tuple(memoryview(bytearray(part)) for part in _cut(content, pieces)))


def room_for(key: bytes, size_bytes: int, pieces: int = 3) -> Value:
    """As much memory, in which nothing is yet."""
    empty = bytes([UNTOUCHED]) * size_bytes
    return Value(key, tuple(memoryview(bytearray(part)) for part in _cut(empty, pieces)))


def content(value: Value) -> bytes:
    return b"".join(value.memory)


def untouched(value: Value) -> bool:
    return set(content(value)) == {UNTOUCHED}


def await_answer(connection: RespConnection) -> None:
    """Return when something has come that nobody has read."""
    assert isinstance(connection._wire, PlainWire | TlsWire)
    select.select([connection._wire._socket], [], [])


def _cut(whole: bytes, pieces: int) -> Sequence[bytes]:
    """Pieces of other lengths, some of them empty where there are more than bytes."""
    ends = [len(whole) * number * number // pieces**2 for number in range(pieces + 1)]
    return [whole[first:last] for first, last in pairwise(ends)]
