"""Answers without end, packed or elsewhere: what is read of them, over a real socket."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Literal

import aiohttp
import pytest

from kvtier_common.metrics.answer import MetricsAnswerError, metrics_session, read_metrics
from kvtier_common.metrics.text import Families

WANTED = (b"vllm:running",)
LINE = b'vllm:running{engine="0"} 64.0\n'
OK = b"HTTP/1.1 200 OK\r\n"
Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that answers every request so; its address, and the requests."""
    asked: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked.append(await reader.readuntil(b"\r\n\r\n"))
            await answer(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        yield f"{host}:{port}", asked


async def read(answer: Answer, timeout_s: float = 30.0) -> Families:
    async with serving(answer) as (address, _), metrics_session(timeout_s, "test") as session:
        return await read_metrics(session, address, WANTED)


def saying(*parts: bytes) -> Answer:
    async def answer(writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
        await writer.drain()

    return answer


def without_end(start: bytes, piece: bytes) -> Answer:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        while True:
            writer.write(piece)
            await writer.drain()

    return answer


async def hanging(writer: asyncio.StreamWriter) -> None:
    writer.write(OK + b"\r\n" + LINE)
    await writer.drain()
    await writer.wait_closed()


async def test_an_answer_is_read_to_its_end() -> None:
    assert (await read(saying(OK, b"\r\n", b"# HELP x\nx 1\n" * 9000, LINE))).total(WANTED[0]) == 64.0


async def test_a_chunked_answer_is_read_to_its_end() -> None:
    chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(LINE), LINE)
    assert (await read(saying(OK, b"Transfer-Encoding: chunked\r\n\r\n", chunks))).total(WANTED[0]) == 64.0


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (without_end(OK + b"\r\n", b"x 1\n" * 9000), "too large"),
        (without_end(OK + b"\r\n", b"x" * 9000), "too large"),
        (without_end(OK + b"\r\n", b"\n" * 9000), "too large"),
        (without_end(OK + b"\r\n", b'vllm:running{a="%b"} 1\n' % (b"x" * 9000)), "too large"),
        (without_end(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 9000), "too large"),
        (saying(OK, b"Content-Encoding: gzip\r\n\r\n", gzip.compress(bytes(10_000_000))), "packed"),
        (saying(OK, b"Content-Encoding: br\r\n\r\n", b"\x0f" * 999), "packed"),
        (saying(b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\n\r\n"), "status 302"),
        (saying(b"HTTP/1.1 500 x\r\n\r\n", LINE), "status 500"),
    ],
    ids=["endless", "one line", "empty lines", "kept lines", "chunks", "gzip", "br", "redirect", "500"],
)
async def test_an_answer_that_no_engine_gives_is_none(answer: Answer, kind: str) -> None:
    with pytest.raises(MetricsAnswerError) as refusal:
        await read(answer)
    assert refusal.value.kind == kind
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "answer",
    [
        without_end(OK, b"X-More: %b\r\n" % (b"x" * 4000)),
        without_end(OK + b"X-More: ", b"x" * 4000),
        without_end(OK + b"Transfer-Encoding: chunked\r\n\r\n5;x=", b"x" * 4000),
        without_end(OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X-More: 1\r\n" * 400),
        without_end(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 99),
        saying(OK, b"Transfer-Encoding: chunked\r\n\r\n", b"fffffffffffffffff\r\n" * 99),
    ],
    ids=["headers", "one header", "chunk extension", "trailers", "continue", "chunk size"],
)
async def test_what_is_no_answer_yet_ends_with_the_time_or_before(answer: Answer) -> None:
    with pytest.raises((aiohttp.ClientError, TimeoutError, MetricsAnswerError)):
        await read(answer, 0.5)


async def test_an_answer_that_stops_ends_with_the_time() -> None:
    with pytest.raises(TimeoutError):
        await read(hanging, 0.1)


async def test_nothing_packed_is_asked_for_and_nobody_else_is() -> None:
    redirect = saying(b"HTTP/1.1 307 x\r\nLocation: http://127.0.0.1:1/metrics\r\nSet-Cookie: a=b\r\n\r\n")
    async with serving(redirect) as (address, asked), metrics_session(30.0, "test") as session:
        for _ in range(2):
            with pytest.raises(MetricsAnswerError):
                await read_metrics(session, address, WANTED)
    assert len(asked) == 2
    assert all(b"Accept-Encoding: identity\r\n" in each and b"Cookie" not in each for each in asked)


class Room(asyncio.Semaphore):
    """Room for one, that tells who wants it."""

    def __init__(self) -> None:
        super().__init__(1)
        self.asked: asyncio.Queue[None] = asyncio.Queue()

    async def acquire(self) -> Literal[True]:
        self.asked.put_nowait(None)
        return await super().acquire()


async def test_long_answers_are_read_a_few_at_a_time_and_usual_ones_always() -> None:
    room = Room()
    long = OK + b"\r\n" + b"# HELP x\n" * 40_000

    async def unfinished(writer: asyncio.StreamWriter) -> None:
        writer.write(long)
        await writer.drain()
        await writer.wait_closed()

    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(metrics_session(30.0, "test"))

        async def ask(answer: Answer) -> Families:
            address, _ = await stack.enter_async_context(serving(answer))
            return await read_metrics(session, address, WANTED, turns=room)

        first = asyncio.create_task(ask(unfinished))
        await room.asked.get()
        second = asyncio.create_task(ask(saying(long, LINE)))
        await room.asked.get()
        assert (await ask(saying(OK, b"\r\n", LINE))).total(WANTED[0]) == 64.0
        assert not second.done()
        first.cancel()
        assert (await second).total(WANTED[0]) == 64.0
        assert not room.locked()
