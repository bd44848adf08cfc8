"""A raw HTTP/2 connection: sends any bytes, and notes how the server ends it."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from tests.picker.attacks.attackers.tally import HELD, SENT, Tally

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    0, 1, 2, 3, 4, 6, 7, 8, 9,
)  # fmt: skip
END_STREAM, ACK, END_HEADERS = 1, 1, 4
INITIAL_WINDOW_SIZE: Final = 4
LARGEST: Final = 16_384
"""Of a frame, unless the server allows more."""
PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEAD: Final = 9
_CODES: Final = (
    "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
    "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
)  # fmt: skip
_HELD_S: Final = 1.0
_CONNECT_S: Final = 5.0
_AGAIN_S: Final = 0.1


class CutOffError(Exception):
    """The server has ended the connection."""


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    """A frame."""
    return b"%b%c%c%b%b" % (
        len(payload).to_bytes(3, "big"), kind, flags, stream_id.to_bytes(4, "big"), payload,
    )  # fmt: skip


def settings(values: Mapping[int, int]) -> bytes:
    """A SETTINGS frame."""
    pairs = (key.to_bytes(2, "big") + value.to_bytes(4, "big") for key, value in values.items())
    return frame(SETTINGS, 0, 0, b"".join(pairs))


def code_name(code: int) -> str:
    """The field's word for an error code."""
    return _CODES[code] if code < len(_CODES) else str(code)


@dataclass(slots=True)
class Wire:
    """An open connection of an attacker."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    tally: Tally
    gone: bool = False

    async def send(self, data: bytes, count: int = 1) -> None:
        """Sends `count` of whatever the attack is made of; waits where the server does not read.

        Raises:
            CutOffError: It has hung up.
        """
        if self.gone:
            raise CutOffError
        self.writer.write(data)
        drained = asyncio.ensure_future(self.writer.drain())
        try:
            done, _ = await asyncio.wait({drained}, timeout=_HELD_S)
            if not done:
                self.tally[HELD] += 1
            await drained
        except OSError as error:
            raise CutOffError from error
        finally:
            drained.cancel()
        self.tally[SENT] += count
        await asyncio.sleep(0)  # the reader's turn: a drain that need not wait gives it none

    async def listen(self) -> None:
        """Takes what the server sends, until it hangs up."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = await self.reader.readexactly(_HEAD)
                payload = await self.reader.readexactly(int.from_bytes(head[:3], "big"))
                self._take(head[3], head[4], payload)
        self.gone = True

    def _take(self, kind: int, flags: int, payload: bytes) -> None:
        if kind == SETTINGS and not flags & ACK:
            self.writer.write(frame(SETTINGS, ACK, 0))
        elif kind == RST_STREAM:
            self.tally[f"reset {code_name(int.from_bytes(payload, 'big'))}"] += 1
        elif kind == GOAWAY:
            self.tally[f"goaway {code_name(int.from_bytes(payload[4:8], 'big'))}"] += 1


async def crowd(
    address: tuple[str, int],
    tally: Tally,
    one: Callable[[Wire], Awaitable[None]],
    *,
    connections: int = 1,
    first: bytes = settings({}),
) -> None:
    """Attacks over connections that come again a tenth of a second after the server has ended them.

    Args:
        address: Of the server.
        tally: Learns what happened.
        one: Attacks over one connection until it is cut off.
        connections: How many at a time.
        first: What follows the preface.
    """

    async def member() -> None:
        while True:
            try:
                async with asyncio.timeout(_CONNECT_S):
                    reader, writer = await asyncio.open_connection(*address)
            except (OSError, TimeoutError):
                tally["refused"] += 1
                await asyncio.sleep(_AGAIN_S)
                continue
            wire = Wire(reader, writer, tally)
            listening = asyncio.create_task(wire.listen())
            try:
                writer.write(PREFACE + first)
                await one(wire)
            except CutOffError:
                tally["closed"] += 1
            finally:
                writer.transport.abort()
                await listening
            await asyncio.sleep(_AGAIN_S)

    async with asyncio.TaskGroup() as group:
        for _ in range(connections):
            group.create_task(member())
