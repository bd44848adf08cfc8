"""What is known of a block, and the slots that blocks are given."""

from dataclasses import dataclass
from enum import IntEnum

from kvtier_connector.core.index.keytable import Slots


class BlockState(IntEnum):
    """What is known of a key. BAD is a block that must not be read and goes away with its last transfer."""

    ABSENT = 0
    PENDING = 1
    READY = 2
    BAD = 3


@dataclass(frozen=True, slots=True)
class Reservation:
    """Slots given to blocks that are about to be stored.

    Attributes:
        keys: the keys that were given a slot, in the order asked, without those that the tier has already.
        slots: their slots.
        evicted: the keys that had to leave.
    """

    keys: list[bytes]
    slots: Slots
    evicted: list[bytes]
