"""Reads and writes by threads that wait in the kernel, one for each transfer: where there is no io_uring."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Final, TypeVar

from kvtier_connector.core.disk.io import engine

Item = TypeVar("Item")
_MOST_THREADS: Final = 32
Call = Callable[[int, Sequence[memoryview], int], int]
"""preadv(2) or pwritev(2): (descriptor, memory, offset in the file) to the number of bytes."""


class ThreadEngine:
    """An IOEngine on threads of its own, one for each transfer of `depth`, but 32 at most.

    They are daemons, not an executor's: the interpreter's end waits for none that hangs in the kernel. Raises
    EngineUnavailableError: so many threads cannot be had.
    """

    name = "threads"
    joined_bytes = engine.JOINED_BYTES

    def __init__(self, depth: int, *, read: Call = os.preadv, write: Call = os.pwritev) -> None:
        self.depth = depth = min(depth, _MOST_THREADS)
        self._read, self._write = read, write
        self._orders = SimpleQueue[engine.BlockIO | None]()
        self._results = SimpleQueue[engine.Completion | None]()
        self._handed: list[tuple[float, engine.BlockIO] | None] = [
            None
        ] * depth  # each thread has its own entry
        self._unreported = 0
        self._closed = False
        self._threads = list[threading.Thread]()
        for number in range(depth):
            thread = threading.Thread(
                target=self._serve, args=(number,), name=f"kvtier-disk-{number}", daemon=True
            )
            try:
                thread.start()
            except RuntimeError as error:
                self.close()
                raise engine.EngineUnavailableError(f"{number} of {depth} threads: {error}") from error
            self._threads.append(thread)

    def submit(self, ios: Sequence[engine.BlockIO]) -> None:
        """Take transfers on; the next thread that is idle takes them."""
        self._check_open()
        self._unreported += len(ios)
        for io in ios:
            self._orders.put(io)

    def take_completions(self, timeout_s: float) -> list[engine.Completion]:
        """Return what has ended."""
        self._check_open()
        results = list[engine.Completion | None]()
        try:
            results.append(self._results.get(timeout=max(0.0, timeout_s)))
        except Empty:
            return []
        results += _drain(self._results)
        ended = [result for result in results if result]
        self._unreported -= len(ended)
        return ended

    def wake(self) -> None:
        """Make `take_completions` return."""
        self._results.put(None)

    def overdue(self, limit_s: float) -> list[engine.BlockIO]:
        """Return what a thread has had for longer than this."""
        before = time.monotonic() - limit_s
        return [handed[1] for handed in self._handed if handed and handed[0] < before]

    @property
    def in_flight(self) -> int:
        """Number of transfers taken on and not yet reported."""
        return self._unreported

    def close(self) -> None:
        """End the threads; those that hang end when the kernel lets them go."""
        if self._closed:
            return
        self._unreported -= sum(1 for io in _drain(self._orders) if io)  # what no thread has taken
        self._closed = True
        for _ in self._threads:
            self._orders.put(None)
        hanging = self._unreported - sum(1 for result in _drain(self._results) if result)
        if not hanging:
            for thread in self._threads:
                thread.join()

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("the engine is closed")

    def _serve(self, number: int) -> None:
        while self._serve_next(number):  # a frame of its own: a thread that waits keeps no memory
            pass

    def _serve_next(self, number: int) -> bool:
        """Do one transfer; tells whether more are to come."""
        io = self._orders.get()
        if io is None:
            return False
        handed_s = time.monotonic()
        self._handed[number] = handed_s, io
        error = None
        try:
            self._transfer(io)
        except OSError as failure:
            error = failure
        except Exception as failure:  # noqa: BLE001 - a caller's mistake must not cost a thread
            error = engine.unusable(io, failure)
        self._handed[number] = None
        self._results.put(engine.Completion(io, time.monotonic() - handed_s, error))
        return True

    def _transfer(self, io: engine.BlockIO) -> None:
        call = self._write if io.write else self._read
        size = engine.size_bytes(io)
        done = call(io.descriptor, io.memory, io.offset)
        while done < size:
            more = call(io.descriptor, tuple(engine.parts_after(io, done)), io.offset + done) if done else 0
            if not more:
                raise engine.ended_short(io, done)
            done += more


def _drain(queue: SimpleQueue[Item]) -> Iterator[Item]:
    while True:
        try:
            yield queue.get_nowait()
        except Empty:
            return
