"""What an engine asks the process that has Mooncake's client, and what that answers.

A value lies in memory that both have mapped: a message says where.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    """Tell how long values are; answered by their lengths in bytes, 0 for those that are not there."""

    keys: Sequence[str]


@dataclass(frozen=True, slots=True)
class Get:
    """Read a value of a known length into the memory; answered by whether it is there now."""

    key: str
    start: int  # of its bytes in the memory
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Put:
    """Store a value from the memory, in the place of what there was; answered by True."""

    key: str
    start: int  # of its bytes in the memory
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove values; answered by True."""

    keys: Sequence[str]


@dataclass(frozen=True, slots=True)
class Failure:
    """The answer to what cannot be done."""

    line: str  # for people
    is_full: bool = False  # whether the store has no room


Request = Sizes | Get | Put | Remove
Answer = list[int] | bool | Failure
