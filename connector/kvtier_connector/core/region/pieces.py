"""The pieces in which a slice of the region is taken and locked; none cuts a slot."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd
from typing import Final

from kvtier_connector.config import MIB
from kvtier_connector.core.region.pages import SMALL_PAGE_BYTES

PIECE_BYTES: Final = 128 * MIB
"""Some 10 ms of a driver's page-locking, which is what a request may have to wait for while a tier grows."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a slice.

    Args:
        offset_bytes: where it begins in the slice, on a page.
        size_bytes: its size, whole pages.
        slots: how many slots, from the slice's first, are whole with it and those before.
    """

    offset_bytes: int
    size_bytes: int
    slots: int


def piece_slots(slot_bytes: int, most_bytes: int = PIECE_BYTES) -> int:
    """Return how many slots make a piece, which ends with a slot and with a page.

    Args:
        slot_bytes: size of a slot.
        most_bytes: what a piece should take at most; one slot may need more.
    """
    least = SMALL_PAGE_BYTES // gcd(slot_bytes, SMALL_PAGE_BYTES)
    return max(least, most_bytes // slot_bytes // least * least)


def pieces_of(slots: int, slot_bytes: int, most_bytes: int = PIECE_BYTES) -> Iterator[Piece]:
    """Yield the pieces of a slice; all but the last are of one size.

    Args:
        slots: of the slice.
        slot_bytes: size of a slot.
        most_bytes: what a piece should take at most.
    """
    step = piece_slots(slot_bytes, most_bytes)
    for first in range(0, slots, step):
        last = min(first + step, slots)
        end_bytes = -(-last * slot_bytes // SMALL_PAGE_BYTES) * SMALL_PAGE_BYTES
        yield Piece(first * slot_bytes, end_bytes - first * slot_bytes, last)
