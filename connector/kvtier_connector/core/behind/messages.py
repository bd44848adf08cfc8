"""What the owner of a tier's index sends the thread that moves blocks, and the events that it gets back."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from typing_extensions import dataclass_transform

_T = TypeVar("_T")

MemoryOf = Callable[[int], tuple[memoryview, ...]]
"""From a slot in memory to its bytes, in the order in which the tier keeps them."""


@dataclass_transform(frozen_default=True, eq_default=False)
def statically_frozen(cls: type[_T]) -> type[_T]:
    """Make a class a dataclass with slots that is equal to itself only; whoever writes to it fails mypy.

    Python makes a frozen dataclass through a call for each field: 1.3 us for eight, where 0.3 do otherwise.
    """
    return dataclass(slots=True, eq=False)(cls)


@statically_frozen
class Order:
    """One block to read into memory or to write to the tier."""

    write: bool  # the direction: True from memory to the tier
    generation: int  # of what the tier holds; the orders for one that is no more are refused
    key: bytes  # the block's
    slot: int  # the block's in the tier; -1 where its key alone says where it is
    memory_slot: int  # the block's in memory
    # the block's, in the tier's order. Nobody else may write to it, nor, of a read, believe it, before the
    # order has ended.
    memory: tuple[memoryview, ...]
    # where the parts end in which a block is read into one piece of memory, in bytes; empty for all at once
    part_ends: tuple[int, ...] = ()
    ticket: int = 0  # under which the workers are told of such a read (core/copies/arrivals.py)


@dataclass(frozen=True, slots=True)
class Clear:
    """Forget everything; answered by Cleared. The generation is of what comes after."""

    generation: int


@dataclass(frozen=True, slots=True)
class Probe:
    """Find out how fast the tier is when nothing is to be done; answered by Probed, unless it fails."""


@dataclass(frozen=True, slots=True)
class KeepRates:
    """Keep the text of what was learnt (Rates) for the next engine."""

    text: str


@statically_frozen
class Ended:
    """An order has ended: its memory is the owner's again."""

    order: Order
    seconds: float  # how long the tier took; 0 if it was not asked
    at_s: float  # when the tier was done with it, by time.monotonic()
    error: Exception | None  # why it failed, or None


@dataclass(frozen=True, slots=True)
class Overdue:
    """An order is taken for failed, but the tier still has its memory: its end is reported later."""

    order: Order


@dataclass(frozen=True, slots=True)
class Down:
    """The tier cannot be used; every order that it had is reported too. The reason is for people."""

    reason: str


@dataclass(frozen=True, slots=True)
class Cleared:
    """A Clear has been done."""


@dataclass(frozen=True, slots=True)
class Probed:
    """The tier was read to find out how fast it is."""

    size_bytes: int
    seconds: float


Event = Ended | Overdue | Down | Cleared | Probed
"""Of any tier; each adds its own."""
