"""A GPU's driver that is as late as may be: what is queued on a stream is done when somebody waits for it.

Not before: whoever forgets to wait computes with what was there. The step's own stream is the engine's
thread, which computes at once.
"""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch


class Stream:
    """Work in its order."""

    def __init__(self) -> None:
        self._queued: list[Callable[[], None]] = []
        self._done = 0

    @property
    def end(self) -> int:
        return self._done + len(self._queued)

    def queue(self, work: Callable[[], None]) -> None:
        self._queued.append(work)

    def run(self, until: int) -> None:
        while self._done < until:
            work = self._queued.pop(0)
            self._done += 1
            work()

    def has_done(self, until: int) -> bool:
        return self._done >= until

    def wait_stream(self, other: "Stream") -> None:
        until = other.end
        self.queue(lambda: other.run(until))

    def wait_event(self, event: "Event") -> None:
        self.queue(event.synchronize)

    def synchronize(self) -> None:
        self.run(self.end)


class StepStream(Stream):
    """The engine's own."""

    def queue(self, work: Callable[[], None]) -> None:
        work()


class Event:
    def __init__(self, *, enable_timing: bool = False) -> None:
        del enable_timing
        self._stream = Stream()
        self._until = 0

    def record(self, stream: Stream) -> None:
        self._stream, self._until = stream, stream.end

    def query(self) -> bool:
        """Whoever asks has given it time enough: nobody does before a step has been computed."""
        self.synchronize()
        return True

    @property
    def has_happened(self) -> bool:
        return self._stream.has_done(self._until)

    def synchronize(self) -> None:
        self._stream.run(self._until)

    def elapsed_time(self, _: "Event") -> float:
        return 1.0


class LateDevice:
    """Stands in for torch.cuda and for vLLM's batched copy.

    Attributes:
        loads: how many copies to the device were asked for, each of many blocks.
        fails_at: which of them is refused, counted from 0; None for none.
    """

    def __init__(self) -> None:
        self.Stream, self.Event = self._new_stream, Event
        self._streams: list[Stream] = []
        self._step = StepStream()
        self._current: Stream = self._step
        self.loads = 0
        self.fails_at: int | None = None

    def _new_stream(self) -> Stream:
        self._streams.append(Stream())
        return self._streams[-1]

    def let_time_pass(self) -> None:
        """Do everything that is queued."""
        for stream in self._streams:
            stream.synchronize()

    def current_stream(self) -> Stream:
        return self._current

    @contextmanager
    def stream(self, stream: Stream) -> Iterator[None]:
        before, self._current = self._current, stream
        try:
            yield
        finally:
            self._current = before

    def swap_blocks_batch(
        self,
        sources: torch.Tensor,
        targets: torch.Tensor,
        sizes: torch.Tensor,
        *,
        is_src_access_order_any: bool,
    ) -> None:
        if is_src_access_order_any:  # as loads are
            self.loads += 1
            if self.loads - 1 == self.fails_at:
                raise RuntimeError("CUDA error: the test's fault")

        def copy() -> None:
            rows = zip(targets.tolist(), sources.tolist(), sizes.tolist(), strict=True)
            for target, source, size in rows:
                ctypes.memmove(target, source, size)

        self._current.queue(copy)

    def put_in(self, patch: pytest.MonkeyPatch) -> None:
        """Have the connector's copier take this for a GPU."""
        from kvtier_connector.vllm.copies import copier_cuda  # noqa: PLC0415 - imports vLLM
        from kvtier_connector.vllm.upstream import dma  # noqa: PLC0415 - as above

        class Torch:
            cuda = self
            Tensor = torch.Tensor
            from_numpy = staticmethod(torch.from_numpy)

        patch.setattr(copier_cuda, "torch", Torch)
        patch.setattr(dma, "ops", self)
