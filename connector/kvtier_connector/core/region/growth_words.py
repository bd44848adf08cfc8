"""How far a rank's slice has grown, told to the scheduler's process, which may be another one."""

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from kvtier_connector.core import shared_words

_WORDS: Final = 3
_BYTES: Final = _WORDS * 8


@dataclass(frozen=True, slots=True)
class Grown:
    """How far the tier has grown.

    Args:
        slots: that are there, from the first.
        pinned_bytes: of all ranks that are locked in memory.
        is_over: no more comes.
    """

    slots: int
    pinned_bytes: int
    is_over: bool


class GrowthWords:
    """Three words that one process writes and another reads: slots, pinned bytes, whether that is all.

    Args:
        memory: mapped from `create`'s path.
    """

    def __init__(self, memory: mmap.mmap) -> None:
        self._words = memoryview(memory).cast("q")

    @classmethod
    def create(cls) -> tuple[Self, str]:
        """Make the words; they are there until this process has ended and all have let go.

        Returns:
            The words, and their path for `attach`.
        """
        memory, path = shared_words.create("kvtier-growth", _BYTES)
        return cls(memory), path

    @classmethod
    def attach(cls, path: str) -> Self:
        """Map what `create` has made.

        Raises:
            ConnectorError: it cannot be reached.
        """
        return cls(shared_words.attach(path))

    def tell(self, grown: Grown) -> None:
        """Say how far the slice has grown; the slots are the last to be seen."""
        self._words[1] = grown.pinned_bytes
        self._words[0] = grown.slots
        self._words[2] = grown.is_over

    def read(self) -> Grown:
        """Return what was told last."""
        is_over = bool(self._words[2])  # before the slots: what comes with it is not missed
        return Grown(self._words[0], self._words[1], is_over)


def together(ranks: Sequence[GrowthWords], slices: int) -> Grown:
    """Return how far all ranks' slices have grown: a slot is there when it is on every rank.

    Args:
        ranks: one or more.
        slices: of the region; fewer than ranks where they use the same one.
    """
    grown = [words.read() for words in ranks]
    return Grown(
        slots=min(each.slots for each in grown),
        pinned_bytes=sum(each.pinned_bytes for each in grown) * min(slices, len(grown)) // len(grown),
        is_over=all(each.is_over for each in grown),
    )
