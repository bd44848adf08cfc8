"""What a hostile publisher of KV events sends: from the bytes of its connection to the index."""

import asyncio
import atexit
from contextlib import suppress
from typing import Final

from kvtier_common.tier import OF_A_POD
from kvtier_scorer.index.prefix_index import PrefixIndex
from kvtier_scorer.picker.engines.kv_events.chains import PodChains
from kvtier_scorer.picker.engines.kv_events.limits import MOST_MESSAGE_BYTES
from kvtier_scorer.picker.engines.kv_events.pod_view import PodView
from kvtier_scorer.picker.engines.kv_events.subscriber import in_steps
from kvtier_scorer.picker.engines.kv_events.zmtp import Connection, ZmtpError, read_greeting

_FRAMES: Final = 3
_NUMBER_BYTES: Final = 8
_HEADS_BYTES: Final = 64
"""Flags and sizes of a message's frames."""
_WITHOUT_ROOM_BYTES: Final = 64 << 10
_LOOP: Final = asyncio.new_event_loop()
atexit.register(_LOOP.close)
_INDEX: Final = PrefixIndex(1 << 22)
_GREETING: Final = (
    b"\xff" + bytes(8) + b"\x7f\x03\x01NULL" + bytes(48)
    + b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB"
)  # fmt: skip
SEEDS: Final = [_GREETING + b"\x01\x00\x01\x08" + bytes(8) + b"\x00\x03\x92\x01\x90"]


class _Nowhere(asyncio.Transport):
    """What is sent is lost."""

    def is_closing(self) -> bool:
        return True

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert len(data) <= _HEADS_BYTES


_WRITER: Final = asyncio.StreamWriter(_Nowhere(), asyncio.Protocol(), None, _LOOP)


class _Reader(asyncio.StreamReader):
    """Fails where more would be taken in than a message may have.

    Attributes:
        taken_bytes: Of this message.
    """

    def __init__(self, data: bytes, room: asyncio.Semaphore) -> None:
        super().__init__(limit=_WITHOUT_ROOM_BYTES)
        self.taken_bytes = 0
        self._room_for_large = room
        self.feed_data(data)
        self.feed_eof()

    async def readexactly(self, n: int) -> bytes:
        self.taken_bytes += n
        assert self.taken_bytes <= MOST_MESSAGE_BYTES + _HEADS_BYTES
        has_room = self._room_for_large.locked()
        assert has_room or self.taken_bytes <= _WITHOUT_ROOM_BYTES + _HEADS_BYTES
        return await super().readexactly(n)


def run(data: bytes) -> None:
    """It ends as a connection does, or with the error that says why it is ended."""
    _LOOP.run_until_complete(_listen(data))


async def _listen(data: bytes) -> None:
    room = asyncio.Semaphore(1)
    pod = _INDEX.add_pod(dict.fromkeys(OF_A_POD, 1000))
    view = PodView(pod, "fuzzed", _INDEX, PodChains(16, "m"))
    try:
        with suppress(ZmtpError, EOFError):
            reader = _Reader(data, room)
            await read_greeting(reader)
            connection = Connection(reader, _WRITER, room)
            while not view.given_up:
                reader.taken_bytes = 0
                async with connection.message() as frames:
                    if len(frames) == _FRAMES and len(frames[1]) == _NUMBER_BYTES:
                        await in_steps(view.apply_live(int.from_bytes(frames[1], "big"), frames[2]))
        assert not room.locked()
    finally:
        _INDEX.remove_pod(pod)
