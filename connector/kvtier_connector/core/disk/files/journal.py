"""The disk tier's index on disk: an append-only log that begins with a snapshot.

A frame is written by one call and carries a checksum over itself, over its place in the file and over a
number drawn when the file was made. Reading stops at the first frame that is not as it was written: whatever
happened to the file, what is read is what was once written, up to some moment. That moment need not be the
last one. A block that has meanwhile given way to another in its slot is told by its own checksum
(fingerprint.py), so nothing has to be flushed, and payload and index need no order between them.

The format is in docs/development/disk-format.md.
"""

import os
import secrets
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import xxhash
from typing_extensions import Self

from kvtier_connector.config import DISK_INDEX_SIZES, DISK_SPARE_BYTES
from kvtier_connector.core.disk.files.fingerprint import bound_checksum
from kvtier_connector.core.disk.files.folder import Directory, disk_errors
from kvtier_connector.core.index.keytable import Slots

_MAGIC: Final = b"kvtier\x00\x01"  # the last byte is the format's version
_HEADER: Final = struct.Struct("<8sIIQQ")  # magic, key bytes, slots, namespace, nonce
_CHECKSUM: Final = struct.Struct("<Q")
_PLACE: Final = struct.Struct("<Q")  # of a frame in the file
_FRAME: Final = struct.Struct("<Q")  # number of records
_START: Final = _HEADER.size + _CHECKSUM.size
_BLOCK: Final = 1
INDEX: Final = "index"  # of its file
_LONGEST_KEY_BYTES: Final = 256
_MOST_COUNTED_BYTES: Final = 64 << 20  # of a journal whose blocks are only counted
_NEW: Final = f"{INDEX}.new"
_MOST_SHRINKING: Final = 16
"""The journal of a tier that was so many times as large is read in full; of a larger one, what fits."""


@dataclass(frozen=True, slots=True)
class Entries:
    """What lies in some slots."""

    slots: Slots  # slot numbers, shape (entries,)
    keys: npt.NDArray[np.uint8]  # shape (entries, key bytes)
    checksums: npt.NDArray[np.uint64]  # of the payloads, shape (entries,)

    def __len__(self) -> int:
        return len(self.slots)


@dataclass(frozen=True, slots=True)
class Shape:
    """What a journal must agree with, or it is another's."""

    key_bytes: int  # length of every key
    slots: int  # number of slots
    namespace: int  # checksum of all that decides what KV bytes mean

    @property
    def record(self) -> np.dtype[np.void]:
        """The layout of a record: a slot, whether it holds a block, that block's checksum and key."""
        return np.dtype(
            [("slot", "<u4"), ("holds", "<u4"), ("checksum", "<u8"), ("key", "u1", (self.key_bytes,))]
        )

    @property
    def nothing(self) -> Entries:
        """No entries."""
        keys = np.empty((0, self.key_bytes), np.uint8)
        return Entries(np.empty(0, np.int32), keys, np.empty(0, np.uint64))


def entries_of(blocks: Sequence[tuple[int, bytes, int]], key_bytes: int) -> Entries:
    """Return blocks, each a slot, a key and a checksum, as the journal takes them."""
    return Entries(
        np.array([slot for slot, _, _ in blocks], np.int32),
        np.frombuffer(b"".join(key for _, key, _ in blocks), np.uint8).reshape(-1, key_bytes),
        np.array([checksum for _, _, checksum in blocks], np.uint64),
    )


@dataclass(frozen=True, slots=True)
class Recovered:
    """What was found in a journal."""

    entries: Entries  # in the order in which they were written, the oldest first
    lost_bytes: int  # bytes at the end that are not as they were written


class Journal:
    """Keeps what lies in each slot, for the next start. One process has it open at a time."""

    def __init__(self, folder: Directory, shape: Shape, descriptor: int, nonce: int, size_bytes: int) -> None:
        self._path = folder.path / INDEX
        self._shape = shape
        self._descriptor = descriptor
        self._nonce = nonce
        self.size_bytes = size_bytes

    @classmethod
    def create(cls, folder: Directory, shape: Shape, snapshot: Iterable[Entries] = ()) -> Self:
        """Write a journal that holds a snapshot, in pieces, in place of a folder's: old or new, never half.

        Raises DiskError: the disk is full, read-only or failing. What was there is as it was, unless the new
        one has taken its place and only the folder could not be flushed; the caller has neither open.
        """
        nonce = secrets.randbits(64)
        with disk_errors(folder.path / INDEX), ExitStack() as undo:
            descriptor = folder.file(_NEW)
            undo.callback(folder.remove, _NEW)
            undo.callback(os.close, descriptor)
            os.ftruncate(descriptor, 0)
            journal = cls(folder, shape, descriptor, nonce, 0)
            journal._write(_header(shape, nonce))
            for entries in snapshot:
                journal.append(entries, ())
            os.fsync(descriptor)
            folder.rename(_NEW, INDEX)
            os.fsync(folder.descriptor)
            undo.pop_all()
        return journal

    @classmethod
    def open(cls, folder: Directory, shape: Shape) -> tuple[Self, Recovered]:
        """Open a journal, or make one where there is none that can be read.

        One of another number of slots is written anew with what fits. One of other keys or another namespace
        is not read.
        """
        content, size_bytes = _content(folder, shape)
        origin = _origin(content, shape)
        if origin is None:
            return cls.create(folder, shape), Recovered(shape.nothing, size_bytes)
        written, nonce = origin
        records, end = _read(content, written, nonce)
        entries = _last_of_each_slot(records[records["slot"] < shape.slots])
        if written != shape:
            return cls.create(folder, shape, [entries]), Recovered(entries, size_bytes - end)
        with disk_errors(folder.path / INDEX), ExitStack() as undo:
            descriptor = folder.file(INDEX, make=False)
            undo.callback(os.close, descriptor)
            os.ftruncate(descriptor, end)
            undo.pop_all()
        return cls(folder, shape, descriptor, nonce, end), Recovered(entries, size_bytes - end)

    def append(self, stored: Entries, emptied: Slots | tuple[()]) -> None:
        """Add what was stored, and slots that hold nothing any more; both at once or neither.

        Raises DiskError: the disk is full, read-only or failing; the journal is as it was.
        """
        if not len(stored) and not len(emptied):
            return
        records = np.zeros(len(emptied) + len(stored), self._shape.record)
        records["slot"][: len(emptied)] = emptied
        later = records[len(emptied) :]
        later["slot"], later["holds"] = stored.slots, _BLOCK
        later["checksum"], later["key"] = stored.checksums, stored.keys
        body = _FRAME.pack(len(records)) + records.tobytes()
        checksum = bound_checksum(self._nonce, _PLACE.pack(self.size_bytes), body)
        with disk_errors(self._path):
            self._write(body + _CHECKSUM.pack(checksum))

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _write(self, frame: bytes) -> None:
        try:
            written = os.pwrite(self._descriptor, frame, self.size_bytes)
            if written < len(frame):
                raise OSError(f"{written} of {len(frame)} bytes were written")  # noqa: TRY301 - as a full disk says it
        except OSError:
            with suppress(OSError):  # the next frame goes over it, and no reader believes half a frame
                os.ftruncate(self._descriptor, self.size_bytes)
            raise
        self.size_bytes += len(frame)


def count_blocks(folder: Directory) -> int | None:
    """Return how many blocks lie in a folder of any shape, of a very large one at least so many.

    None where there is no journal, or one of another format. Raises UnsafeFolderError: the journal is no
    plain file of ours alone; OSError: it cannot be read.
    """
    content = folder.read(INDEX, _MOST_COUNTED_BYTES)
    if len(content) < _START:
        return None
    _, key_bytes, slots, namespace, nonce = _HEADER.unpack_from(content)
    shape = Shape(key_bytes, slots, namespace)
    if key_bytes > _LONGEST_KEY_BYTES or content[:_START] != _header(shape, nonce):
        return None
    return len(_last_of_each_slot(_read(content, shape, nonce)[0]))


def _content(folder: Directory, shape: Shape) -> tuple[bytes, int]:
    """Return what a folder's journal begins with, as much as one may take in memory, and its size."""
    most_bytes = _MOST_SHRINKING * DISK_INDEX_SIZES * shape.slots * shape.record.itemsize + DISK_SPARE_BYTES
    with disk_errors(folder.path / INDEX):
        content = folder.read(INDEX, most_bytes)
        size_bytes = folder.look(INDEX).st_size if len(content) == most_bytes else len(content)
    return content, size_bytes


def _header(shape: Shape, nonce: int) -> bytes:
    header = _HEADER.pack(_MAGIC, shape.key_bytes, shape.slots, shape.namespace, nonce)
    return header + _CHECKSUM.pack(xxhash.xxh3_64_intdigest(header))


def _origin(content: bytes, shape: Shape) -> tuple[Shape, int] | None:
    """Return a journal's own shape and nonce, or None if it is none, or one of other keys or meaning."""
    if len(content) < _START:
        return None
    _, _, slots, _, nonce = _HEADER.unpack_from(content)
    written = replace(shape, slots=slots)
    return (written, nonce) if content[:_START] == _header(written, nonce) else None


def _read(content: bytes, shape: Shape, nonce: int) -> tuple[npt.NDArray[np.void], int]:
    """Return all records up to the first frame that is not as it was written, and where that begins."""
    parts = [np.empty(0, shape.record)]
    end = _START
    for start, body in _frames(content, shape.record.itemsize):
        after = start + len(body)
        if _CHECKSUM.unpack_from(content, after)[0] != bound_checksum(nonce, _PLACE.pack(start), body):
            break
        records = np.frombuffer(body, shape.record, offset=_FRAME.size)
        if (records["slot"] >= shape.slots).any():
            break
        parts.append(records)
        end = after + _CHECKSUM.size
    return np.concatenate(parts), end


def _frames(content: bytes, record_bytes: int) -> Iterator[tuple[int, memoryview]]:
    """Yield where each whole frame begins, and its bytes without the checksum."""
    view, start = memoryview(content), _START
    while start + _FRAME.size <= len(content):
        after = start + _FRAME.size + _FRAME.unpack_from(content, start)[0] * record_bytes
        if after + _CHECKSUM.size > len(content):
            return
        yield start, view[start:after]
        start = after + _CHECKSUM.size


def _last_of_each_slot(records: npt.NDArray[np.void]) -> Entries:
    """Return the blocks that are left once every record has replaced what its slot held."""
    _, from_behind = np.unique(records["slot"][::-1], return_index=True)
    last = np.sort(len(records) - 1 - from_behind)
    left = records[last]
    left = left[left["holds"] == _BLOCK]
    return Entries(left["slot"].astype(np.int32), left["key"], left["checksum"])
