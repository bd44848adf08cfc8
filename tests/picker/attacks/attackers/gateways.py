"""Requests to a gateway, with bodies that nobody has to send."""

import asyncio
import itertools
from typing import Final

from tests.picker.attacks.attackers.blocks import literal, opened
from tests.picker.attacks.attackers.tally import ANSWERED, HELD, SENT, Tally
from tests.picker.attacks.attackers.target import Target
from tests.picker.attacks.attackers.wire import RST_STREAM, Wire, crowd, frame

_MIB: Final = 1 << 20
_LARGEST: Final = 15 * _MIB // 2
"""That a gateway takes by itself, and some."""
_SIZES: Final = (_LARGEST, 12 * _MIB, 60 * _MIB)
_CHUNK: Final = 1 << 16
_AGAIN_S: Final = 0.05
_HOLDERS: Final = 250
_BURST: Final = 30
_CANCEL: Final = (8).to_bytes(4, "big")
_LAST_STREAM: Final = 1 << 31
_COMPLETION: Final = b"".join(
    literal(name, value)
    for name, value in (
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", b"/v1/completions"),
        (b":authority", b"x"),
        (b"content-length", b"1"),
    )
)
_HEAD: Final = b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n%b\r\n\r\n"


async def integers(target: Target, tally: Tally) -> None:
    """Four at a time send lists of small integers, of which a parser makes a hundred times their bytes."""
    bodies = [b'{"model":"fake","x":[%b1]}' % (b"1," * (size // 2 - 16)) for size in _SIZES]

    async def member(first: int) -> None:
        for body in itertools.islice(itertools.cycle(bodies), first, None):
            await _request(target, tally, b"content-length: %d" % len(body), body, SENT)
            await asyncio.sleep(_AGAIN_S)

    async with asyncio.TaskGroup() as group:
        for first in range(4):
            group.create_task(member(first))


async def resets(target: Target, tally: Tally) -> None:
    """Requests over HTTP/2 that are reset at once, over four connections and those that take their place."""
    await crowd(target.address, tally, _reset, connections=4)


async def held(target: Target, tally: Tally) -> None:
    """250 at a time send all of a body but its last byte; every second one does not say how long it is."""
    body = b'{"model":"fake","prompt":"%b"}' % (b"x" * (_LARGEST - 64))
    announced = (b"content-length: %d" % len(body), body[:-1])
    chunked = (b"transfer-encoding: chunked", b"%x\r\n%b" % (len(body), body[:-1]))

    async def member(length: bytes, part: bytes) -> None:
        while True:
            await _request(target, tally, length, part, HELD)
            await asyncio.sleep(_AGAIN_S)

    async with asyncio.TaskGroup() as group:
        for kind in itertools.islice(itertools.cycle((announced, chunked)), _HOLDERS):
            group.create_task(member(*kind))


async def _reset(wire: Wire) -> None:
    for first in range(1, _LAST_STREAM, 2 * _BURST):
        ids = range(first, first + 2 * _BURST, 2)
        frames = (opened(each, _COMPLETION) + frame(RST_STREAM, 0, each, _CANCEL) for each in ids)
        await wire.send(b"".join(frames), _BURST)


async def _request(target: Target, tally: Tally, length: bytes, body: bytes, kind: str) -> None:
    """One over a connection of its own, to its answer or its end."""
    try:
        reader, writer = await asyncio.open_connection(*target.address)
    except OSError:
        tally["refused"] += 1
        return
    try:
        writer.write(_HEAD % length)
        for start in range(0, len(body), _CHUNK):
            writer.write(body[start : start + _CHUNK])
            await writer.drain()
        tally[kind] += 1
        status = (await reader.readline())[9:12].decode()
        tally[ANSWERED if status == "200" else status or "closed"] += 1
    except OSError:
        tally["closed"] += 1
    finally:
        writer.close()
