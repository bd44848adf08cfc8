"""Transfers through memory of their own: callers need not wait until a disk lets go of theirs."""

import mmap
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pickle import PickleBuffer
from typing import Final

import numpy as np

from kvtier_connector.core.disk.io.engine import BlockIO, Completion, IOEngine

_AT_ONCE_BYTES: Final = 4 << 20
"""What is copied before more is asked of the disk, which must not wait for copies: half a millisecond's."""


class StagedEngine:
    """An IOEngine that never lets the kernel have the caller's memory.

    What is written is copied when it is handed over, what was read when it has come. The caller may take its
    memory back at any moment, also while the disk hangs, by releasing the memoryviews that it gave: nothing
    touches it afterwards, and a release is refused (BufferError) while a copy uses it. The memory may have
    any address and length.

    A transfer has `block_bytes`, a multiple of DISK_ALIGNMENT_BYTES; what is shorter is filled up with
    whatever was there. `engine.depth` times as much memory is taken as it is used.
    """

    def __init__(self, engine: IOEngine, block_bytes: int) -> None:
        self._engine = engine
        self.name = f"{engine.name} through its own memory"
        self.depth = engine.depth
        self.joined_bytes = block_bytes
        memory = memoryview(mmap.mmap(-1, engine.depth * block_bytes))
        self._free = [memory[start : start + block_bytes] for start in range(0, len(memory), block_bytes)]
        self._at_once = max(1, _AT_ONCE_BYTES // block_bytes)
        self._ended = deque[Completion]()
        self._waiting = deque[BlockIO]()
        self._staged = dict[int, tuple[BlockIO, memoryview]]()

    def submit(self, ios: Sequence[BlockIO]) -> None:
        """Take transfers on, and copy what those write for which there is memory."""
        self._waiting.extend(ios)
        self._fill()

    def take_completions(self, timeout_s: float) -> list[Completion]:
        """Return what has ended, with what was read where it belongs.

        If the caller has taken that memory back, the disk has still done its part: this is no error here.
        """
        self._ended.extend(self._engine.take_completions(0.0 if self._ended else timeout_s))
        landed = [self._land(self._ended.popleft()) for _ in range(min(self._at_once, len(self._ended)))]
        self._fill()
        return landed

    def wake(self) -> None:
        """Make `take_completions` return."""
        self._engine.wake()

    def overdue(self, limit_s: float) -> list[BlockIO]:
        """Return the transfers that the kernel has had for longer than this."""
        return [self._staged[io.tag][0] for io in self._engine.overdue(limit_s)]

    @property
    def in_flight(self) -> int:
        """Number of transfers in the kernel's hands or waiting for their turn."""
        return self._engine.in_flight + len(self._ended) + len(self._waiting)

    def close(self) -> None:
        """Let go of the kernel's and the engine's resources."""
        self._waiting.clear()
        self._engine.close()

    def _fill(self) -> None:
        handed = list[BlockIO]()
        while self._waiting and self._free:
            io = self._waiting.popleft()
            row = self._free.pop()
            self._staged[io.tag] = io, row
            if io.write:
                _copy(io.memory, row, into_row=True)
            handed.append(replace(io, memory=(row,)))
        self._engine.submit(handed)

    def _land(self, ended: Completion) -> Completion:
        io, row = self._staged.pop(ended.io.tag)
        if not io.write and ended.error is None:
            _copy(io.memory, row, into_row=False)
        self._free.append(row)
        return replace(ended, io=io)


def _copy(parts: Sequence[memoryview], row: memoryview, *, into_row: bool) -> None:
    """Copy without the interpreter's lock, which others want too; memory taken back is left out."""
    start = 0
    for part in parts:
        try:
            held = PickleBuffer(part)  # unlike an array, it has the memoryview refuse to be released
        except ValueError:  # released
            return
        theirs = np.frombuffer(part, np.uint8)
        ours = np.frombuffer(row[start : start + len(theirs)], np.uint8)
        start += len(theirs)
        source, target = (theirs, ours) if into_row else (ours, theirs)
        np.copyto(target, source)
        held.release()
