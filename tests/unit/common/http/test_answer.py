"""What is read of an answer: so much and no more, and little of what is large at a time."""

import asyncio
from contextlib import aclosing

import aiohttp
import pytest
from aiohttp.base_protocol import BaseProtocol

from kvtier_common.errors import TooLargeError
from kvtier_common.http.answer import LONG_BYTES, CutLine, read_body, read_lines

MOST_BYTES = 1 << 20


def _stream(*chunks: bytes, ends: bool = True) -> aiohttp.StreamReader:
    loop = asyncio.get_running_loop()
    stream = aiohttp.StreamReader(BaseProtocol(loop), limit=2 * MOST_BYTES, loop=loop)
    for chunk in chunks:
        stream.feed_data(chunk)
    if ends:
        stream.feed_eof()
    return stream


async def _all_lines(stream: aiohttp.StreamReader, large: asyncio.Semaphore) -> list[bytes | CutLine]:
    async with aclosing(read_lines(stream, MOST_BYTES, large)) as lines:
        return [line async for line in lines]


async def test_an_answer_is_read_up_to_its_bound() -> None:
    large = asyncio.Semaphore(1)
    assert await read_body(_stream(b"ab", b"c"), "GET x", 3, large) == b"abc"
    with pytest.raises(TooLargeError, match="the answer to GET x is longer than 3 bytes"):
        await read_body(_stream(b"ab", b"cd", ends=False), "GET x", 3, large)


async def test_lines_are_whole_wherever_they_are_cut() -> None:
    large = asyncio.Semaphore(1)
    assert await _all_lines(_stream(b"a", b"b\n\nc\nd", b"\n", b"unfinished"), large) == [b"ab", b"c", b"d"]


async def test_a_line_that_is_too_long_is_cut_at_once_and_the_next_ones_come_whole() -> None:
    large = asyncio.Semaphore(1)
    begun = _stream(b"a\nb", bytes(MOST_BYTES), ends=False)
    async with aclosing(read_lines(begun, MOST_BYTES, large)) as lines:
        assert [await anext(lines), await anext(lines)] == [b"a", CutLine(b"b" + bytes(1023))]
        begun.feed_data(bytes(LONG_BYTES + 1) + b"\nc\n")
        assert await anext(lines) == b"c"
    assert not large.locked()


async def test_what_is_large_waits_for_its_turn_and_gives_it_back() -> None:
    large = asyncio.Semaphore(1)
    await large.acquire()
    begun = _stream(bytes(LONG_BYTES + 1), ends=False)
    line = asyncio.create_task(_all_lines(begun, large))
    body = asyncio.create_task(read_body(_stream(bytes(LONG_BYTES + 1)), "GET x", MOST_BYTES, large))
    assert await read_body(_stream(bytes(LONG_BYTES)), "GET y", MOST_BYTES, large) == bytes(LONG_BYTES)
    for _ in range(10):
        await asyncio.sleep(0)
    begun.feed_data(b"\n")
    begun.feed_eof()
    assert not line.done()
    assert not body.done()
    large.release()
    assert await line == [bytes(LONG_BYTES + 1)]
    assert len(await body) == LONG_BYTES + 1
    assert not large.locked()
