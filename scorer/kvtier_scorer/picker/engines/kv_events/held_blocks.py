"""How many blocks the views of all pods hold together: a bound, and whose blocks are evicted beyond it."""

from typing import Final, Protocol

from kvtier_scorer.config.kv_events import BYTES_PER_HELD_BLOCK
from kvtier_scorer.index.reserve import allowed_bytes

_OF_ALLOWED: Final = 3 / 4
"""Of what the index may grow to: 3/8 of a memory limit."""


class Holder(Protocol):
    """A pod's view, which holds blocks."""

    def evict(self) -> None:
        """Forgets all its blocks."""


class HeldBlocks:
    """Counts the blocks of all views. Beyond the bound, the view with the most blocks is evicted.

    What a pod's events may come to is bounded by what its tiers are planned to hold, but a tier that nobody
    planned, or pods that nobody did, could claim more than the picker has memory for.

    Args:
        most: Blocks, all together.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[Holder, int] = {}
        self._sum = 0

    def hold(self, holder: Holder, blocks: int) -> None:
        """A view holds so many blocks from now on; it may be the one that is evicted."""
        self._sum += blocks - self._held.get(holder, 0)
        self._held[holder] = blocks
        while self._sum > self._most:
            evicted = max(self._held, key=self._held.__getitem__)
            self.release(evicted)
            evicted.evict()

    def release(self, holder: Holder) -> None:
        """A view holds nothing any more. May be called again."""
        self._sum -= self._held.pop(holder, 0)


def most_blocks() -> int:
    """The number of blocks that this process has memory for."""
    return int(allowed_bytes() * _OF_ALLOWED) // BYTES_PER_HELD_BLOCK
