"""What the index's owner sends the thread that reads and writes, and the events that it gets back."""

from collections.abc import Callable
from dataclasses import dataclass

from kvtier_connector.core.disk.files.store import Store
from kvtier_connector.core.disk.io.engine import statically_frozen
from kvtier_connector.core.index.keytable import Slots

MemoryOf = Callable[[int], tuple[memoryview, ...]]
"""From a slot in memory to its bytes, in the order of the file."""


@statically_frozen
class Order:
    """One block to read into memory or to write to disk."""

    write: bool  # the direction: True from memory to disk
    generation: int  # of the store whose slot it is; the orders for one that is no more are refused
    key: bytes  # the block's
    slot: int  # the block's on disk
    memory_slot: int  # the block's in memory
    # the block's, in the order of the file. Nobody else may write to it, nor, of a read, believe it, before
    # the order has ended.
    memory: tuple[memoryview, ...]
    # where the parts end in which a block is read into one piece of memory, in bytes; empty for all at once
    part_ends: tuple[int, ...] = ()
    ticket: int = 0  # under which the workers are told of such a read (core/copies/arrivals.py)


@dataclass(frozen=True, slots=True)
class Forget:
    """Slots that hold nothing any more."""

    generation: int
    slots: Slots


@dataclass(frozen=True, slots=True)
class Clear:
    """Forget everything; answered by Cleared. The generation is of what comes after."""

    generation: int


@dataclass(frozen=True, slots=True)
class Probe:
    """Find out how fast the disk is when nothing is to be done; answered by Probed, unless it fails."""


@dataclass(frozen=True, slots=True)
class KeepRates:
    """Keep the text of what was learnt (Rates) for the next engine."""

    text: str


@statically_frozen
class Ended:
    """An order has ended: its memory is the owner's again."""

    order: Order
    seconds: float  # how long the disk took; 0 if it was not asked
    at_s: float  # when the disk was done with it, by time.monotonic()
    error: Exception | None  # why it failed, or None


@dataclass(frozen=True, slots=True)
class Overdue:
    """An order is taken for failed, but the disk still has its memory: its end is reported later."""

    order: Order


@dataclass(frozen=True, slots=True)
class Down:
    """The disk cannot be used; every order that it had is reported too. The reason is for people."""

    reason: str


@dataclass(frozen=True, slots=True)
class Up:
    """The disk can be used again: its index, filled from what was found, is the owner's from now on."""

    store: Store


@dataclass(frozen=True, slots=True)
class Cleared:
    """A Clear has been done."""


@dataclass(frozen=True, slots=True)
class Probed:
    """The disk was read to find out how fast it is."""

    size_bytes: int
    seconds: float


Message = Order | Forget | Clear | Probe | KeepRates
Event = Ended | Overdue | Down | Up | Cleared | Probed
