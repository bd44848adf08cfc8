"""Finds out how fast a disk is that nothing is asked of."""

import mmap
import os
import time
from collections.abc import Sequence
from typing import Final

from kvtier_connector.core.disk.files.segments import Segments
from kvtier_connector.core.disk.io.engine import BlockIO, IOEngine

_PROBE_BYTES: Final = 64 << 20
"""What is read at most: enough for a fast disk to show its pace, and half a second of a slow one."""
_abandoned: Final = list[mmap.mmap]()  # what the kernel may still write to, of a disk that hangs


def probe(
    segments: Segments, engine: IOEngine, held: Sequence[int], free: Sequence[int], patience_s: float
) -> tuple[int, float] | None:
    """Read slots that hold blocks; where none does, write free ones first. Nothing else may be under way.

    Returns how many bytes were read and in how many seconds, so that a disk which did not end in time counts
    as slower than that; None if it fails.
    """
    count = max(1, min(_PROBE_BYTES // segments.slot_bytes, engine.depth))
    slots = (held or free)[:count]
    scratch = mmap.mmap(-1, max(1, len(slots)) * segments.slot_bytes)
    memory = memoryview(scratch)
    size_bytes = segments.slot_bytes
    pieces = [memory[start : start + size_bytes] for start in range(0, len(memory), size_bytes)]
    try:
        if not held:
            written = _move_blocks(segments, engine, slots, pieces, patience_s, write=True)
            if written is None or engine.in_flight:
                return written  # what ends from now on may be writes still
            _forget_cached(segments, slots)
        return _move_blocks(segments, engine, slots, pieces, patience_s, write=False)
    finally:
        if engine.in_flight:
            _abandoned.append(scratch)
        else:
            for piece in pieces:
                piece.release()
            memory.release()
            scratch.close()


def is_probe(io: BlockIO) -> bool:
    """Tell whether a transfer is a probe's; orders' have tags from 0."""
    return io.tag < 0


def _move_blocks(  # noqa: PLR0913 - what moves what
    segments: Segments,
    engine: IOEngine,
    slots: Sequence[int],
    pieces: Sequence[memoryview],
    patience_s: float,
    *,
    write: bool,
) -> tuple[int, float] | None:
    start_s = time.monotonic()
    places = map(segments.place, slots)
    engine.submit(
        [
            BlockIO(-1 - number, write, place.descriptor, place.offset, (piece,))
            for number, (place, piece) in enumerate(zip(places, pieces, strict=True))
        ]
    )
    ended = 0
    while ended < len(slots):
        left_s = start_s + patience_s - time.monotonic()
        completions = engine.take_completions(max(0.0, left_s))
        if any(completion.error for completion in completions):
            return None
        ended += len(completions)
        if left_s <= 0:
            break
    return max(1, ended) * segments.slot_bytes, time.monotonic() - start_s


def _forget_cached(segments: Segments, slots: Sequence[int]) -> None:
    """Have the next read come from the disk where the page cache is used."""
    if segments.direct:
        return
    for descriptor in {segments.place(slot).descriptor for slot in slots}:
        os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
