"""A GPU's driver that is as late as may be: what is queued on a stream is done when somebody waits for it.

Not before: whoever forgets to wait computes with what was there. The step's own stream is the engine's
thread, which computes at once.
"""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kvtier_connector.core.copies import load_parts

WAITS_FOLDER = "KVTIER_TEST_WAITS"
"""Variable with the folder into which an engine's own processes write what steps wait for."""


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
    is_silent = False
    """Whether none says that it has happened, as late as a device may be."""

    def __init__(self, *, enable_timing: bool = False) -> None:
        del enable_timing
        self._stream = Stream()
        self._until = 0

    def record(self, stream: Stream) -> None:
        self._stream, self._until = stream, stream.end

    def query(self) -> bool:
        """Whoever asks has given it time enough: nobody does before a step has been computed."""
        if Event.is_silent:
            return False
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
        singly: how many copies were made one by one.
        is_lost: whether that fails, too.
    """

    def __init__(self) -> None:
        self.Stream, self.Event = self._new_stream, Event
        self._streams: list[Stream] = []
        self._step = StepStream()
        self._current: Stream = self._step
        self.loads = 0
        self.fails_at: int | None = None
        self.singly = 0
        self.is_lost = False

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

        self._queue(sources, targets, sizes)

    def _queue(self, sources: torch.Tensor, targets: torch.Tensor, sizes: torch.Tensor) -> None:
        def copy() -> None:
            rows = zip(targets.tolist(), sources.tolist(), sizes.tolist(), strict=True)
            for target, source, size in rows:
                ctypes.memmove(target, source, size)

        self._current.queue(copy)

    def copy_singly(self, copies: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> None:
        if self.is_lost:
            raise RuntimeError("CUDA error: the test's device is lost")
        self.singly += len(copies[0])
        self._queue(*copies)

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
        patch.setattr(dma, "copy_singly", self.copy_singly)


def put_in_engines(patch: pytest.MonkeyPatch) -> LateDevice:
    """Have engines of this process take the device's memory for a GPU's, and small loads for large ones."""
    from kvtier_connector.core.region import pin  # noqa: PLC0415 - as below
    from kvtier_connector.vllm import spec  # noqa: PLC0415 - as below
    from kvtier_connector.vllm.copies import copier_cuda  # noqa: PLC0415 - imports vLLM
    from kvtier_connector.vllm.offloading import sync_loads  # noqa: PLC0415 - as above

    late = LateDevice()

    def cuda(self: spec.KVTierOffloadingSpec, memory: Any) -> Any:  # noqa: ANN401 - a slice and a pair
        return copier_cuda.CudaCopier(), pin.by_kernel(memory, self.settings.memlock)

    late.put_in(patch)
    patch.setattr(spec.KVTierOffloadingSpec, "_device", cuda)
    patch.setattr(sync_loads, "current_platform", SimpleNamespace(is_cpu=lambda: False))
    patch.setattr(load_parts, "_LEAST_PART_BYTES", 1)
    _let_schedule_ahead(patch)
    return late


def _let_schedule_ahead(patch: pytest.MonkeyPatch) -> None:
    """Have vLLM schedule steps ahead on a CPU, too, where it is asked to."""
    from vllm.platforms.cpu import CpuPlatform  # noqa: PLC0415 - takes seconds

    check = CpuPlatform.check_and_update_config

    def check_all_else(config: Any) -> None:  # noqa: ANN401 - vLLM's
        ahead = config.scheduler_config.async_scheduling
        check(config)
        config.scheduler_config.async_scheduling = bool(ahead)

    patch.setattr(CpuPlatform, "check_and_update_config", staticmethod(check_all_else))
