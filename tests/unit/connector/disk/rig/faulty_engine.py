"""An IOEngine around a real one that does what a disk does not do on demand: fail, end short, delay, hang."""

import errno
import os
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kvtier_connector.core.disk.io.engine import BlockIO, Completion, IOEngine, size_bytes

SOON_S = 60.0
"""Longer than anything here takes; a test that waits so long has failed."""


@dataclass(frozen=True, slots=True)
class Fail:
    """The transfer ends with this error; nothing was done."""

    number: int


@dataclass(frozen=True, slots=True)
class Short:
    """Half of the transfer is done, and then the file ends."""


@dataclass(frozen=True, slots=True)
class Keep:
    """The transfer is begun when it is released, and not before: a delay, or a disk that hangs."""


Fault = Fail | Short | Keep
Chooser = Callable[[BlockIO], Fault | None]


class FaultyEngine:
    """Serves what has no fault by the engine within, and records what should never be in flight together."""

    def __init__(self, within: IOEngine, *, joined_bytes: int | None = None) -> None:
        self.name = f"faulty {within.name}"
        self.depth = within.depth
        self.joined_bytes = within.joined_bytes if joined_bytes is None else joined_bytes
        self.clashes = list[str]()
        self.begun = Counter[bool]()
        """Transfers taken on, by direction: True for writes."""
        self.begun_bytes = Counter[bool]()
        """Of these transfers."""
        self._within = within
        self._choose: Chooser = lambda _io: None
        self._kept = list[BlockIO]()
        self._freed = list[BlockIO]()
        self._done = list[Completion]()
        self._flying = dict[int, tuple[int, int, int, bool]]()
        self._late = False
        self._changed = threading.Condition()

    # ---- for the test ----

    def fault(self, choose: Chooser) -> None:
        """Have every transfer from now on meet what is chosen for it."""
        with self._changed:
            self._choose = choose

    def fault_next(self, *faults: Fault, write: bool | None = None) -> None:
        """Have the next transfers, of one direction or of both, meet these faults, one each."""
        left = list(faults)

        def choose(io: BlockIO) -> Fault | None:
            return left.pop(0) if left and write in {None, io.write} else None

        self.fault(choose)

    def await_kept(self, transfers: int) -> None:
        """Wait until so many transfers are kept."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self._kept) >= transfers, SOON_S)

    def await_begun(self, transfers: int) -> None:
        """Wait until so many transfers have been taken on."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.begun.total() >= transfers, SOON_S)

    def become_late(self) -> None:
        """Have what is kept be overdue from now on."""
        with self._changed:
            self._late = True
        self.wake()

    def release(self) -> None:
        """Have what is kept be done, and nothing more be kept or late."""
        with self._changed:
            self._freed += self._kept
            self._kept.clear()
            self._choose = lambda _io: None
            self._late = False
        self.wake()

    # ---- IOEngine ----

    def submit(self, ios: Sequence[BlockIO]) -> None:
        whole = list[BlockIO]()
        with self._changed:
            for io in ios:
                self.begun[io.write] += 1
                self._note(io)
                match self._choose(io):
                    case None:
                        whole.append(io)
                    case Keep():
                        self._kept.append(io)
                    case Fail(number):
                        self._done.append(Completion(io, 0.0, OSError(number, os.strerror(number))))
                    case Short():
                        self._done.append(Completion(io, 0.0, _half(io)))
            self._changed.notify_all()
        self._within.submit(whole)

    def take_completions(self, timeout_s: float) -> list[Completion]:
        with self._changed:
            freed, self._freed = self._freed, []
            done, self._done = self._done, []
        self._within.submit(freed)
        done += self._within.take_completions(0.0 if done else timeout_s)
        with self._changed:
            for each in done:
                del self._flying[each.io.tag]
        return done

    def wake(self) -> None:
        self._within.wake()

    def overdue(self, limit_s: float) -> list[BlockIO]:
        with self._changed:
            return list(self._kept) if self._late else self._within.overdue(limit_s)

    @property
    def in_flight(self) -> int:
        return len(self._flying)

    def close(self) -> None:
        self._within.close()

    def _note(self, io: BlockIO) -> None:
        size = size_bytes(io)
        self.begun_bytes[io.write] += size
        file, end = os.fstat(io.descriptor).st_ino, io.offset + size
        for inode, start, stop, write in self._flying.values():
            if inode == file and start < end and io.offset < stop and (write or io.write):
                self.clashes.append(f"two transfers at offset {io.offset} at a time, one of them a write")
        self._flying[io.tag] = file, io.offset, end, io.write


def _half(io: BlockIO) -> OSError:
    """Do the first half of a transfer."""
    call, offset, left = os.pwritev if io.write else os.preadv, io.offset, size_bytes(io) // 2
    for part in io.memory:
        some = part[:left]
        call(io.descriptor, [some], offset)
        offset, left = offset + some.nbytes, left - some.nbytes
    return OSError(errno.EIO, "the file ended")
