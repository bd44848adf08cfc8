"""Memory that a reset has freed while something still reads or writes it."""

from collections.abc import Iterable

import numpy as np

from kvtier_connector.core.index.keytable import Slots


class WithheldSlots:
    """Slots that hold nothing any more and may not be filled yet, by who still uses them.

    Workers say once that all of their copies have ended. The disk's transfers end one by one.
    """

    def __init__(self) -> None:
        self._by_workers = set[int]()
        self._by_disk = set[int]()

    def reset(self, *, by_workers: Iterable[int], by_disk: Iterable[int]) -> Slots:
        """Take note of another reset, and return all slots that may not be filled.

        Args:
            by_workers: slots that their copies use; those of earlier resets may still be in use, too.
            by_disk: all slots that its transfers use, those of earlier resets included.
        """
        self._by_workers.update(by_workers)
        self._by_disk = set(by_disk)
        return np.array(sorted(self._by_workers | self._by_disk), np.int32)

    def workers_ended(self) -> list[int]:
        """Return the slots that may be filled now that no copy of before the reset is left."""
        free = self._by_workers - self._by_disk
        self._by_workers.clear()
        return sorted(free)

    def disk_ended(self, slots: Iterable[int]) -> list[int]:
        """Return which of these slots, that the disk uses no more, may be filled now."""
        ended = list(slots)
        self._by_disk.difference_update(ended)
        return [slot for slot in ended if slot not in self._by_workers]
