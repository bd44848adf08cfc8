"""Frames that a server may have to apply to each of 10,000 streams."""

from typing import Final

from tests.picker.attacks.attackers.blocks import KEPT, again, opened
from tests.picker.attacks.attackers.tally import Tally
from tests.picker.attacks.attackers.target import Target
from tests.picker.attacks.attackers.wire import (
    INITIAL_WINDOW_SIZE,
    SETTINGS,
    WINDOW_UPDATE,
    Wire,
    crowd,
    frame,
)

_STREAMS: Final = 10_000
_PAIRS: Final = 2_730
"""Of six bytes in a frame of 16 KB."""
_UPDATES: Final = 1_000
"""Of 13 bytes in 13 KB."""
_ONE: Final = (1).to_bytes(4, "big")


async def settings_of_streams(target: Target, tally: Tally) -> None:
    """SETTINGS frames of 16 KB that change every stream's window 2,730 times."""
    pairs = (
        INITIAL_WINDOW_SIZE.to_bytes(2, "big") + (65_535 + number % 2).to_bytes(4, "big")
        for number in range(_PAIRS)
    )
    all_of_them = frame(SETTINGS, 0, 0, b"".join(pairs))

    async def one(wire: Wire) -> None:
        await _open(wire)
        while True:
            await wire.send(all_of_them)

    await crowd(target.address, tally, one)


async def window_updates(target: Target, tally: Tally) -> None:
    """WINDOW_UPDATE frames of the whole connection, one byte each."""
    updates = frame(WINDOW_UPDATE, 0, 0, _ONE) * _UPDATES

    async def one(wire: Wire) -> None:
        await _open(wire)
        while True:
            await wire.send(updates, _UPDATES)

    await crowd(target.address, tally, one)


async def _open(wire: Wire) -> None:
    await wire.send(opened(1, KEPT) + again(3, _STREAMS - 1), _STREAMS)
