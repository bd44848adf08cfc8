"""Requests over ext_proc as a gateway passes them on, with bodies that nobody has to send."""

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from typing import Final, TypeAlias

import grpc
from tests.picker.attacks.attackers.odd_fields import ODD
from tests.picker.attacks.attackers.tally import ANSWERED, OPEN, SENT, Tally
from tests.picker.attacks.attackers.target import Target
from tests.picker.attacks.attackers.wire import code_name
from tests.picker.attacks.neighbour import PROCESS
from tests.unit.scorer.picker.gateway.protocol.gateway import answer, request_body, request_headers

_MIB: Final = 1 << 20
_CHUNK: Final = 1 << 16
"""As Envoy passes them on."""
_AGAIN_S: Final = 0.1
_CHAT: Final = "/v1/chat/completions"
_COMPLETION: Final = "/v1/completions"
_PART: Final = b'{"type":"text","text":"x"},'
_FEWER: Final = 4
"""Parts that what is around them takes the place of."""
_RESET: Final = re.compile(r"RST_STREAM with error code (\d+)")
_WROTE_AFTER_END: Final = "Internal error from Core"
"""What grpc.aio says to a client that still writes, and has not read how the server ended the call."""
_Process: TypeAlias = "grpc.aio.StreamStreamMultiCallable[bytes, bytes]"


async def small_parts(target: Target, tally: Tally) -> None:
    """One chat of 32 MiB after another, of a million parts each."""
    await _again_and_again(target, tally, small_parts_of(32 * _MIB), 1)


async def allowed_parts(target: Target, tally: Tally) -> None:
    """60 chats of 7.5 MiB at a time, of a quarter of a million parts: fewer bytes than one may have."""
    await _again_and_again(target, tally, small_parts_of(15 * _MIB // 2), 60)


async def unfinished(target: Target, tally: Tally) -> None:
    """60 uploads of 30 MiB that never end."""
    chunk = request_body(b"x" * _CHUNK, end_of_stream=False)
    await _all(
        _call(target, tally, itertools.repeat(chunk, 30 * _MIB // _CHUNK), linger=True) for _ in range(60)
    )


async def unread(target: Target, tally: Tally) -> None:
    """60 whole bodies of 20 MiB whose answers nobody reads."""
    await _unread(target, tally, 20 * _MIB)


async def unread_allowed(target: Target, tally: Tally) -> None:
    """60 whole bodies of 7.5 MiB whose answers nobody reads."""
    await _unread(target, tally, 15 * _MIB // 2)


async def odd_fields(target: Target, tally: Tally) -> None:
    """Bodies with a field of another type than it should be, one after another."""
    for body in itertools.cycle(ODD):
        await _call(target, tally, [request_body(body)])


def small_parts_of(size: int) -> bytes:
    """A chat of about so many bytes, and no more."""
    parts = _PART * (size // len(_PART) - _FEWER)
    return b'{"model":"fake","messages":[{"role":"user","content":[%b]}]}' % parts[:-1]


def chunks_of(body: bytes) -> Iterator[bytes]:
    """A body as a gateway passes it on."""
    for start in range(0, len(body), _CHUNK):
        yield request_body(body[start : start + _CHUNK], end_of_stream=start + _CHUNK >= len(body))


async def _again_and_again(target: Target, tally: Tally, body: bytes, at_a_time: int) -> None:
    chunks = list(chunks_of(body))
    while True:
        await _all(_call(target, tally, chunks) for _ in range(at_a_time))
        await asyncio.sleep(_AGAIN_S)


async def _unread(target: Target, tally: Tally, size: int) -> None:
    text = b"x" * size
    chunks = list(chunks_of(b'{"model":"fake","prompt":"%b"}' % text))
    await _all(_call(target, tally, chunks, linger=True, reads=False) for _ in range(60))


async def _all(calls: Iterable[Coroutine[None, None, None]]) -> None:
    async with asyncio.TaskGroup() as group:
        for call in calls:
            group.create_task(call)


async def _call(
    target: Target, tally: Tally, chunks: Iterable[bytes], *, linger: bool = False, reads: bool = True
) -> None:
    """One request; one that lingers does not end until the server has ended it."""
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.http2.bdp_probe", 0)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{target.port}", options=options) as channel:
        process: _Process = channel.stream_stream(PROCESS)

        async def messages() -> AsyncIterator[bytes]:
            yield request_headers({":path": _COMPLETION if linger else _CHAT})
            for chunk in chunks:
                yield chunk
            tally[SENT] += 1
            if linger:
                await asyncio.Event().wait()

        call = process(messages())
        tally[OPEN] += 1
        try:
            end = await _end(call, linger=linger) if reads else ""
            tally[end or _status(await call.code(), await call.details())] += 1
        except grpc.aio.AioRpcError as error:
            tally[_status(error.code(), error.details())] += 1
        finally:
            tally[OPEN] -= 1
            call.cancel()


async def _end(call: "grpc.aio.StreamStreamCall[bytes, bytes]", *, linger: bool) -> str:
    """Reads until the request is refused or has what it came for; empty where the call ends before."""
    async for message in call:
        told = answer(message)
        if told.HasField("immediate_response"):
            return str(told.immediate_response.status.code)
        if told.HasField("request_headers") and not linger:
            return ANSWERED
    return ""


def _status(code: grpc.StatusCode, details: str | None) -> str:
    """How the server ended a call: both of these are INTERNAL by the client's own word."""
    if details == _WROTE_AFTER_END:
        return "ended"
    told = _RESET.search(details or "")
    return f"reset {code_name(int(told[1]))}" if told else code.name
