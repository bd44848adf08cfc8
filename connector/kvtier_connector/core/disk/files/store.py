"""The disk tier's files, opened together: what was there, and what goes with what."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Final

import numpy as np
from typing_extensions import Self

from kvtier_connector.config import DISK_INDEX_SIZES, DISK_SPARE_BYTES, disk_slots
from kvtier_connector.core.behind.break_even import Rates
from kvtier_connector.core.disk.files.fingerprint import Fingerprint, bound_checksum
from kvtier_connector.core.disk.files.folder import Directory, LockedFolder, disk_errors
from kvtier_connector.core.disk.files.journal import Entries, Journal, Shape
from kvtier_connector.core.disk.files.namespaces import FACTS, RATES, Removed, rates_in, remove_others
from kvtier_connector.core.disk.files.segments import Segments
from kvtier_connector.core.index.hints import ALL_FOR_ALL, Sharing
from kvtier_connector.core.index.index import BlockIndex
from kvtier_connector.core.index.keytable import Slots
from kvtier_connector.core.machine.memory import format_bytes
from kvtier_connector.errors import SettingError

GENERATIONS: Final = count(1)
_ROWS_AT_ONCE: Final = 4096  # of a snapshot: some 0.1 ms, for which the index's owner may have to wait


@dataclass(frozen=True, slots=True)
class StoreRequest:
    """What is asked of the disk."""

    path: Path  # the tier's folder
    capacity_bytes: int  # what all its files together take at most
    block_bytes: int  # size of a block on disk, a multiple of DISK_ALIGNMENT_BYTES
    key_bytes: int  # length of a block's key
    fingerprint: Fingerprint  # what the blocks' bytes mean
    direct: bool  # pass by the page cache
    holder: str  # one line by which other engines are told who has the folder
    sharing: Sharing = ALL_FOR_ALL  # how it is shared out between tenants and hints

    @property
    def shape(self) -> Shape:
        """Return the journal's shape, with as many slots as fit; SettingError if none does."""
        slots = disk_slots(self.capacity_bytes, self.block_bytes, self.key_bytes)
        if slots < 1:
            raise SettingError(
                f"disk_capacity_bytes: {format_bytes(self.capacity_bytes)} do not hold one chunk of "
                f"{format_bytes(self.block_bytes)} and its index; give more"
            )
        return Shape(self.key_bytes, slots, self.fingerprint.number)


class Store:
    """An opened folder. Its index belongs to one thread, all the rest to the one that reads and writes.

    What writes raises DiskError: the disk is full, read-only or failing.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the parts that it keeps together
        self,
        lock: LockedFolder,
        directory: Directory,
        shape: Shape,
        segments: Segments,
        journal: Journal,
        recovered: Entries,
        removed: tuple[Removed, ...] = (),
        *,
        sharing: Sharing = ALL_FOR_ALL,
    ) -> None:
        self.generation = next(GENERATIONS)
        """Of what is in the slots as it is opened; the owner of the index makes another one to clear that."""
        self.folder = directory.path
        self._directory = directory
        self.shape = shape
        self.segments = segments
        self.index = BlockIndex(shape.slots, shape.key_bytes, sharing=sharing)
        self.index.restore(recovered.keys, recovered.slots)
        self.restored = self.index.used
        self.removed = removed
        self._lock = lock
        self._journal = journal
        self._is_kept = True
        # Payloads' checksums, and whether a slot has been written as the journal says.
        self._checksums = np.full(shape.slots, 0, np.uint64)
        self._checksums[recovered.slots] = recovered.checksums
        self._written = np.full(shape.slots, 0, np.bool_)
        self._written[recovered.slots] = True
        self._compact_at_bytes = self._next_compaction()
        self._full_at_bytes = (DISK_INDEX_SIZES - 1) * self._snapshot_bytes + DISK_SPARE_BYTES // 2

    @classmethod
    def open(cls, request: StoreRequest) -> Self:
        """Take the folder, give it its space, and read what the last engine left there.

        Namespaces of other fingerprints are removed: the space is bounded, and this one takes all of it.
        Raises SettingError: the folder or the capacity cannot be used at all; UnsafeFolderError: the folder,
        or something in it, may be another user's; FolderInUseError: another engine has the folder; DiskError:
        the disk is full, read-only or failing.
        """
        shape = request.shape
        with ExitStack() as undo:
            lock = LockedFolder.take(request.path, request.holder)
            undo.callback(lock.close)
            with disk_errors(request.path):
                removed = remove_others(lock.directory, request.fingerprint)
                folder = lock.directory.folder(request.fingerprint.folder)
            undo.callback(folder.close)
            segments = Segments.open(
                folder, slot_bytes=request.block_bytes, slots=shape.slots, direct=request.direct
            )
            undo.callback(segments.close)
            journal, recovered = Journal.open(folder, shape)
            undo.callback(journal.close)
            with disk_errors(folder.path):
                folder.write(FACTS, request.fingerprint.text.encode())
            store = cls(
                lock,
                folder,
                shape,
                segments,
                journal,
                recovered.entries,
                removed,
                sharing=request.sharing,
            )
            undo.pop_all()
        return store

    def check(self) -> None:
        """Raise DiskError if the folder is not there any more."""
        self._lock.check()

    def checksum(self, slot: int) -> int | None:
        """Return what a slot's payload must have, or None if nothing has been written there."""
        return int(self._checksums[slot]) if self._written[slot] else None

    def checksum_in_memory(self, key: bytes, parts: Iterable[memoryview]) -> int | None:
        """Return the checksum of a block's payload, or None if that was taken back."""
        try:
            return bound_checksum(self.shape.namespace, key, *parts)
        except ValueError:  # a memoryview that was released
            return None

    def slots_for_probing(self, most: int) -> tuple[list[int], list[int]]:
        """Return some slots whose bytes are a block's, and some that nothing has been written to."""
        written = np.flatnonzero(self._written)[:most].tolist()
        return written, np.flatnonzero(~self._written)[:most].tolist()

    def begin_overwrite(self, slot: int) -> None:
        """Forget what a slot held: its bytes are about to change."""
        self._written[slot] = False

    def record(self, stored: Entries, emptied: Slots | tuple[()]) -> None:
        """Put down what was stored, and which slots hold nothing any more."""
        if self._is_kept:
            self._journal.append(stored, emptied)
        self._checksums[stored.slots] = stored.checksums
        self._written[list(emptied)] = False
        self._written[stored.slots] = True

    @property
    def wants_compaction(self) -> bool:
        """Whether the journal has grown so much that it should be written anew."""
        return self._journal.size_bytes > self._compact_at_bytes

    @property
    def journal_is_full(self) -> bool:
        """Whether the journal must be written anew before it takes more than its share of the capacity."""
        return self._journal.size_bytes > self._full_at_bytes

    @property
    def rates(self) -> Rates:
        """What the last engine has kept here."""
        return rates_in(self._directory)

    def keep_rates(self, text: str) -> None:
        """Keep what was learnt for the next engine: the old or the new, never half."""
        new = f"{RATES}.new"
        with disk_errors(self.folder):
            self._directory.write(new, text.encode())
            self._directory.rename(new, RATES)

    def compact(self, unacknowledged: Entries) -> None:
        """Write the journal anew."""
        self._renew(chain(self._snapshot(), [unacknowledged]))
        self._compact_at_bytes = self._next_compaction()

    def clear(self) -> None:
        """Have the next start find nothing, nor what is stored after this. The index is cleared by its owner.

        Who clears may have changed the model's weights in place. The next start has those that its
        fingerprint tells, and what was computed with others would look to it like its own.
        """
        self._written.fill(0)
        self._renew(())
        self._is_kept = False
        self._compact_at_bytes = self._next_compaction()

    def close(self) -> None:
        """Let go of the folder."""
        self._journal.close()
        self.segments.close()
        self._directory.close()
        self._lock.close()

    def _renew(self, snapshot: Iterable[Entries]) -> None:
        journal = Journal.create(self._directory, self.shape, snapshot)
        self._journal.close()
        self._journal = journal

    def _snapshot(self) -> Iterator[Entries]:
        """Yield what lies in the slots. Rows may be torn: a checksum tells whether a block is its key's."""
        for first in range(0, self.shape.slots, _ROWS_AT_ONCE):
            slots, keys = self.index.rows(first, min(first + _ROWS_AT_ONCE, self.shape.slots))
            written = self._written[slots]
            slots, keys = slots[written], keys[written]
            if len(slots):
                yield Entries(slots, keys, self._checksums[slots])

    def _next_compaction(self) -> int:
        most = (DISK_INDEX_SIZES - 1) * self._snapshot_bytes
        return min(max(2 * self._journal.size_bytes, DISK_SPARE_BYTES // 4), most)

    @property
    def _snapshot_bytes(self) -> int:
        return self.shape.slots * self.shape.record.itemsize
