"""Reads what a server sends, no more than was asked for; what is long takes turns, so that little is held."""

from asyncio import Semaphore
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Final

import aiohttp

from kvtier_common.errors import TooLargeError

LONG_BYTES: Final = 256 << 10  # answers and lines longer than that take turns
_HEAD_BYTES: Final = 1024


@dataclass(slots=True)
class LargeReadSlot:
    """The turn that one answer takes once it is long."""

    turns: Semaphore  # how many long ones are read at a time; the others wait, and their senders with them
    long_bytes: int  # above this it is long
    _taken: bool = False

    async def grew_to(self, size_bytes: int) -> bool:
        """Waits for a turn if it is long now; whether it was taken in this call."""
        if self._taken or size_bytes <= self.long_bytes:
            return False
        self._taken = await self.turns.acquire()
        return True

    def give_back(self) -> None:
        """Lets the next one have the turn, if this one has it."""
        if self._taken:
            self._taken = False
            self.turns.release()


@dataclass(frozen=True, slots=True)
class CutLine:
    """A line that is longer than was asked for."""

    head: bytes  # how it begins, 1 KiB


async def read_body(stream: aiohttp.StreamReader, what: str, most_bytes: int, turns: Semaphore) -> bytes:
    """A whole answer. Raises TooLargeError: it is longer."""
    body, turn = bytearray(), LargeReadSlot(turns, LONG_BYTES)
    try:
        async for chunk in stream.iter_any():
            if len(body) + len(chunk) > most_bytes:
                body.clear()  # the error's frames live until the next collection of garbage
                raise TooLargeError(f"the answer to {what} is longer than {most_bytes} bytes")
            body += chunk
            await turn.grew_to(len(body))
        return bytes(body)
    finally:
        turn.give_back()


async def read_lines(
    stream: aiohttp.StreamReader, most_bytes: int, turns: Semaphore
) -> AsyncGenerator[bytes | CutLine, None]:
    """The lines of an answer that goes on; what is unfinished at its end is dropped.

    Of a line longer than `most_bytes` a `CutLine` is told at once, and its rest is dropped; long lines take
    turns.
    """
    line, is_cut, turn = bytearray(), False, LargeReadSlot(turns, LONG_BYTES)
    try:
        async for chunk in stream.iter_any():
            *ends, unfinished = chunk.split(b"\n")
            for end in ends:
                whole = b"" if is_cut else bytes(line + end)
                is_cut = False
                line.clear()
                if whole:
                    yield whole
            if ends:
                turn.give_back()
            if is_cut:
                continue
            line += unfinished
            if len(line) > most_bytes:
                yield CutLine(bytes(line[:_HEAD_BYTES]))
                is_cut = True
                line.clear()
                turn.give_back()
            await turn.grew_to(len(line))
    finally:
        turn.give_back()
