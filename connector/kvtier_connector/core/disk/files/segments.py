"""The files that hold the disk tier's blocks: slots of one size, whose space is there from the start."""

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, NamedTuple

from typing_extensions import Self

from kvtier_connector.config import DISK_ALIGNMENT_BYTES
from kvtier_connector.core.disk.files.folder import Directory, disk_errors
from kvtier_connector.core.machine.memory import allocate, format_bytes
from kvtier_connector.errors import DiskError, UnsafeFolderError

SEGMENT_BYTES: Final = 1 << 30
"""Large enough that a terabyte has a thousand files, small enough to make and remove one in a moment."""
_NAME: Final = "blocks-{:06}"
_ALL: Final = "blocks-"


class Place(NamedTuple):
    """Where a slot's bytes lie."""

    descriptor: int
    offset: int


class Segments:
    """Slots 0..slots-1 on disk; their space is taken at once, so that no write finds a full disk."""

    def __init__(self, descriptors: list[int], slot_bytes: int, per_segment: int, *, direct: bool) -> None:
        self._descriptors = descriptors
        self.slot_bytes = slot_bytes
        self._per_segment = per_segment
        self.direct = direct
        """Whether the page cache is passed by; some file systems cannot."""

    @classmethod
    def open(
        cls,
        folder: Directory,  # in one that this process has locked
        *,
        slot_bytes: int,  # size of a slot, a multiple of DISK_ALIGNMENT_BYTES
        slots: int,  # number of slots
        direct: bool,  # whether to pass by the page cache where the file system can
        segment_bytes: int = SEGMENT_BYTES,  # size of a file at most, but at least one slot
    ) -> Self:
        """Open a folder's segments, make those that it lacks, and remove those that are too many.

        Raises ValueError: a slot is not aligned; DiskError: there is not enough space, the disk is read-only
        or failing, or something else is in a segment's place; what there was before is still there, and
        nothing else.
        """
        if slot_bytes % DISK_ALIGNMENT_BYTES:
            raise ValueError(f"a slot of {slot_bytes} bytes is not a multiple of {DISK_ALIGNMENT_BYTES}")
        with disk_errors(folder.path):
            _check_space(folder, slots * slot_bytes)
        per_segment = max(1, segment_bytes // slot_bytes)
        sizes = {
            _NAME.format(number): min(per_segment, slots - first) * slot_bytes
            for number, first in enumerate(range(0, slots, per_segment))
        }
        with disk_errors(folder.path):
            there = set(_names(folder))
            opened = list[int]()
            try:
                for name, size_bytes in sizes.items():
                    opened.append(allocate(folder.file(name), size_bytes))
            except (OSError, UnsafeFolderError):
                _undo(folder, opened, sizes.keys() - there)
                raise
            direct = direct and _bypass_cache(opened)
            for name in there - sizes.keys():  # from when the tier was larger
                folder.remove(name)
        return cls(opened, slot_bytes, per_segment, direct=direct)

    def place(self, slot: int) -> Place:
        """Return where a slot lies."""
        segment, within = divmod(slot, self._per_segment)
        return Place(self._descriptors[segment], within * self.slot_bytes)

    def are_neighbours(self, slot: int, other: int) -> bool:
        """Tell whether the other slot's bytes come right behind a slot's."""
        return other == slot + 1 and other % self._per_segment != 0

    def close(self) -> None:
        """Close the files."""
        while self._descriptors:
            os.close(self._descriptors.pop())


def _names(folder: Directory) -> list[str]:
    return [name for name in folder.names() if name.startswith(_ALL)]


def _check_space(folder: Directory, wanted: int) -> None:
    """Refuse what does not fit before anything is taken; what becomes too much is not removed for it."""
    taken = min(wanted, sum(folder.look(name).st_blocks * 512 for name in _names(folder)))
    disk = os.fstatvfs(folder.descriptor)
    free = disk.f_bavail * disk.f_frsize
    if wanted > taken + free:
        raise DiskError(
            f"disk_capacity_bytes: {format_bytes(wanted)} do not fit {folder.path}: {format_bytes(free)} are "
            f"free and {format_bytes(taken)} the tier's own; lower it or name another disk_path"
        )


def _bypass_cache(opened: list[int]) -> bool:
    """Open the very same files anew for O_DIRECT; tells whether their file system can."""
    for place, before in enumerate(opened):
        try:
            descriptor = os.open(f"/proc/self/fd/{before}", os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC)
        except OSError:
            return False
        os.close(before)
        opened[place] = descriptor
    return True


def _undo(folder: Directory, opened: list[int], new: Iterable[str]) -> None:
    for descriptor in opened:
        os.close(descriptor)
    for name in new:
        with suppress(OSError):
            folder.remove(name)
