"""Reads what an API server sends, no more of it than was asked for, and little of what is large at a time.

Tenants write most of what is in it.
"""

from asyncio import Semaphore
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Final

import aiohttp

from kvtier_operator.reconcile.api_server.errors import TooLargeError

MOST_BYTES: Final = 16 << 20
"""The longest answer, or line of a watch: an object has 1.5 MiB (etcd, --max-request-bytes), and a character
of it up to six bytes in JSON."""
LARGE_BYTES: Final = 256 << 10
LARGE_AT_A_TIME: Final = 2
"""Answers and lines longer than that which are read at a time; others wait, and the server with them."""


async def read_body(stream: aiohttp.StreamReader, what: str, most_bytes: int, large: Semaphore) -> bytes:
    """A whole answer.

    Args:
        stream: Where it comes from.
        what: What it is, for people.
        most_bytes: The longest to take.
        large: Turns of what is large.

    Raises:
        TooLargeError: It is longer.
    """
    async with AsyncExitStack() as turn:
        body = _Text(what, most_bytes, turn, large)
        async for chunk in stream.iter_any():
            await body.append(chunk)
        return bytes(body.text)


async def read_lines(
    stream: aiohttp.StreamReader, what: str, large: Semaphore
) -> AsyncGenerator[bytes, None]:
    """The lines of a watch; what the server left unfinished at the end is dropped.

    Args:
        stream: Where they come from.
        what: What they are, for people.
        large: Turns of what is large.

    Raises:
        TooLargeError: One is longer than MOST_BYTES.
    """
    async with AsyncExitStack() as turn:
        rest = _Text(what, MOST_BYTES, turn, large)
        async for chunk in stream.iter_any():
            *ends, unfinished = chunk.split(b"\n")
            for end in ends:
                line = bytes(rest.text + end)
                rest.text.clear()
                if line:
                    yield line
            if ends:
                await turn.aclose()
            await rest.append(unfinished)


@dataclass(slots=True)
class _Text:
    """What was read so far; takes a turn when it becomes large."""

    what: str
    most_bytes: int
    turn: AsyncExitStack
    large: Semaphore
    text: bytearray = field(default_factory=bytearray)

    async def append(self, chunk: bytes) -> None:
        before = len(self.text)
        if before + len(chunk) > self.most_bytes:
            raise TooLargeError(f"the answer to {self.what} is longer than {self.most_bytes} bytes")
        self.text += chunk
        if before <= LARGE_BYTES < len(self.text):
            await self.turn.enter_async_context(self.large)
