"""Takes and locks a rank's slice piece by piece, beside the engine that serves already.

To take and to page-lock a hundred gigabytes lasts a minute, which nobody need wait for: the tier begins empty
anyway. It is done while the engine is at rest, and slowly beside its steps (pace.py). The scheduler's
process, which may be another one, is told how far it is.
"""

import mmap
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from typing_extensions import Self

from kvtier_connector.config import MIB
from kvtier_connector.core.machine.memory import attach_words, create_words, format_bytes
from kvtier_connector.core.machine.numa import use_every_core
from kvtier_connector.core.region import pages
from kvtier_connector.core.region.pace import Pace
from kvtier_connector.core.region.pages import Piece
from kvtier_connector.core.region.pin import Pinning, PinReport, check_lock
from kvtier_connector.core.region.region import Slice

_BYTES: Final = 3 * 8
_NICENESS: Final = 10
"""The engine's own threads go first, and leave a tenth of a core: setpriority(2) is of threads on Linux."""
_FIRST_BYTES: Final = 128 * MIB
"""What is there before the first request: half a tenth of a second of taking and locking."""
_AT_ONCE_BYTES: Final = 2 * MIB
"""Memory that one call takes. Meanwhile the kernel lets nobody else change the process's memory, and a thread
that others keep from a core has it wait for ten times as long: with 32 MiB, a request took 0.3 s."""
_SHARE: Final = 0.02
"""Of the time of steps, for what they wait for: a driver's page-locking, or a core that they compute on."""
_SPARE_SHARE: Final = 0.1
"""Beside a GPU's engine, for taking pages: a core does it that steps do not need."""


@dataclass(frozen=True, slots=True)
class Grown:
    """How far the tier has grown."""

    slots: int  # that are there, from the first
    pinned_bytes: int  # of all ranks that are locked in memory
    is_over: bool  # no more comes


class GrowthWords:
    """Three words that one process writes and another reads: slots, pinned bytes, whether that is all."""

    def __init__(self, memory: mmap.mmap) -> None:
        self._words = memoryview(memory).cast("q")

    @classmethod
    def create(cls) -> tuple[Self, str]:
        """Make the words; they are there until this process has ended and all have let go."""
        memory, path = create_words("kvtier-growth", _BYTES)
        return cls(memory), path

    @classmethod
    def attach(cls, path: str) -> Self:
        """Map what `create` has made."""
        return cls(attach_words(path))

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
    """Return how far all ranks' slices have grown: a slot is there when it is on every rank."""
    grown = [words.read() for words in ranks]
    return Grown(
        slots=min(rank.slots for rank in grown),
        pinned_bytes=sum(rank.pinned_bytes for rank in grown) * min(slices, len(grown)) // len(grown),
        is_over=all(rank.is_over for rank in grown),
    )


class Growth:
    """Grows one slice on a thread of its own, at a pace that leaves steps their time.

    `say` is told once what came of it, and whether it is less than was asked for.
    """

    def __init__(  # noqa: PLR0913 - its parts
        self,
        memory: Slice,
        pieces: Sequence[Piece],
        *,
        page_bytes: int,
        pinning: Pinning,
        pace: Pace,
        words: GrowthWords,
        say: Callable[[str, bool], object],
    ) -> None:
        self._memory = memory
        self._pieces = deque(pieces)
        self._last = pieces[-1]
        self._page_bytes = page_bytes
        self._pinning = pinning
        self._pace = pace
        self._words = words
        self._say = say
        self._taken_bytes = 0
        self._unlocked = self._refused = ""  # why the rest is not locked; why there is no more
        self._grown = Grown(0, 0, is_over=False)
        self._begun_s = 0.0
        self._thread = threading.Thread(target=self._run, name="kvtier-growth", daemon=True)

    def start(self) -> None:
        """Take the first pieces, so that the first request finds a tier, and have the others taken. Once."""
        if self._begun_s:
            return
        self._begun_s = time.monotonic()
        if self._take_first():
            self._thread.start()
        else:
            self._end()

    def stop(self) -> None:
        """End after the call that is under way."""
        self._pace.stop()
        self.join()

    def join(self) -> None:
        """Return when it has ended."""
        if self._thread.ident is not None:
            self._thread.join()

    def _take_first(self) -> bool:
        """Take and lock what is to be there at once; tells whether more may come."""
        first = list(pages.pieces_within(self._pieces, _FIRST_BYTES)) or [self._pieces[0]]
        untaken = self._untaken(first[-1])
        try:
            pages.populate([untaken], self._page_bytes, at_once_bytes=_AT_ONCE_BYTES)
        except OSError as error:
            self._refused = pages.refusal(error)
            return False
        self._taken_bytes += untaken.size_bytes
        for piece in first:
            self._pieces.popleft()
            if not self._lock(piece):
                return False
        return True

    def _run(self) -> None:
        with suppress(OSError):  # a sandbox may forbid it
            use_every_core()
            # this thread takes little time that the engine could use
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        pages.stay_on_node(self._memory.node)
        for piece in self._pieces:
            try:
                may_go_on = self._take(piece)
            except OSError as error:
                self._refused = pages.refusal(error)
                break
            if not may_go_on:
                return
            begun_s = self._clock()
            if not self._lock(piece):
                break
            worked_s = self._clock() - begun_s
            # a driver's own lock goes to who asks first, which is never who waits for it
            if not self._pace.rest(worked_s, _SHARE, least_s=worked_s if self._by_driver else 0.0):
                return
        self._end()

    @property
    def _by_driver(self) -> bool:
        return self._pinning.is_needed

    def _clock(self) -> float:
        """What locking takes from others: a driver's lock for as long as it lasts, else a core's time."""
        return time.monotonic() if self._by_driver else time.thread_time()

    def _end(self) -> None:
        pinned_bytes = self._grown.pinned_bytes
        try:
            pinned_bytes = self._report(time.monotonic() - self._begun_s)
        except OSError as error:  # /proc may be closed to a process; whoever waits for the end is told
            self._say(f"the kernel does not say what memory it gave: {error}", bool(self._refused))
        self._tell(self._grown.slots, pinned_bytes, is_over=True)

    def _untaken(self, piece: Piece) -> pages.Range:
        """Return what is not taken yet up to a piece's end; nothing if a huge page came with the last one."""
        end_bytes = piece.offset_bytes + piece.size_bytes
        until_bytes = min(-(-end_bytes // self._page_bytes) * self._page_bytes, self._memory.size_bytes)
        start, size_bytes = self._memory.address + self._taken_bytes, until_bytes - self._taken_bytes
        return pages.Range(start, size_bytes, self._memory.node)

    def _take(self, piece: Piece) -> bool:
        """Take a piece's pages; tells whether to go on. Raises OSError: there is no memory."""
        share = _SPARE_SHARE if self._by_driver else _SHARE
        untaken, most_bytes = self._untaken(piece), max(_AT_ONCE_BYTES, self._page_bytes)
        for address, size_bytes in pages.parts(untaken, most_bytes):
            begun_s = time.thread_time()
            pages.populate_part(address, size_bytes)
            self._taken_bytes += size_bytes
            if not self._pace.rest(time.thread_time() - begun_s, share):
                return False
        return True

    def _lock(self, piece: Piece) -> bool:
        """Lock a piece that was taken; tells whether it can be used."""
        pinned_bytes = self._grown.pinned_bytes
        if not self._unlocked:  # a limit that was reached does not grow
            call, address = self._pinning.call, self._memory.address + piece.offset_bytes
            self._unlocked = (call and call(address, piece.size_bytes)) or ""
            if self._unlocked and self._pinning.is_needed:
                self._refused = self._unlocked
                return False
            if self._pinning.counts and not self._unlocked:
                pinned_bytes = piece.offset_bytes + piece.size_bytes
        self._tell(piece.slots, pinned_bytes, is_over=False)
        return True

    def _tell(self, slots: int, pinned_bytes: int, *, is_over: bool) -> None:
        self._grown = Grown(slots, pinned_bytes, is_over)
        self._words.tell(self._grown)

    def _report(self, seconds: float) -> int:
        """Say what came of it; returns the bytes that are locked."""
        self._memory.look(self._taken_bytes, seconds)
        grown, last = self._grown, self._last
        size_bytes = last.offset_bytes + last.size_bytes
        pinning = self._pinning
        why = self._unlocked or pinning.how
        pinned = check_lock(
            self._memory, PinReport(pinning.asked, grown.pinned_bytes, size_bytes, why), pinning
        )
        outcome = f"all there after {seconds:.1f} s"
        if self._refused:
            there = format_bytes(grown.slots * size_bytes // last.slots)
            outcome = (
                f"this rank's part of the CPU tier stays at {there} of {format_bytes(size_bytes)}: "
                f"{self._refused}; lower cpu_capacity_bytes to what can be had, or raise what bounds it"
            )
        self._say(f"{self._memory.report}; {pinned}; {outcome}", bool(self._refused))
        return pinned.pinned_bytes
