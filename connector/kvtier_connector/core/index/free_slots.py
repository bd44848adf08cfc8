"""Which slots hold nothing and may be filled."""

from collections.abc import Sequence

import numpy as np

from kvtier_connector.core.index.keytable import Slots


class FreeSlots:
    """A stack of slot numbers.

    Args:
        capacity: slots 0..capacity-1 are free at first, and are taken in that order.

    Attributes:
        count: how many are free.
    """

    def __init__(self, capacity: int) -> None:
        self._slots: Slots = np.arange(capacity - 1, -1, -1, dtype=np.int32)
        self.count = capacity

    def take(self, count: int) -> Slots:
        """Take as many slots as that; there are so many."""
        self.count -= count
        return self._slots[self.count : self.count + count][::-1].copy()

    def add(self, slots: Slots | Sequence[int]) -> None:
        """Let slots be taken again, the last of them first."""
        self._slots[self.count : self.count + len(slots)] = slots
        self.count += len(slots)

    def replace(self, slots: Slots) -> None:
        """Let these slots be taken and no others, the first of them first."""
        self._slots[: len(slots)] = slots[::-1]
        self.count = len(slots)

    def remove(self, slots: Slots) -> None:
        """Keep those of the slots that are free from being taken."""
        self.replace(np.setdiff1d(self._slots[: self.count], slots))
