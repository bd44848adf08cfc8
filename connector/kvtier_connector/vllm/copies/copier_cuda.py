"""Copies where the device is a GPU: DMA on two streams of its own, one for each direction.

The order against the engine's own work is upstream's (vllm/v1/kv_offload/cpu/gpu_worker.py): a store waits
for the step that writes what it reads, a load for whatever was still to be written to the blocks it fills.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import torch

from kvtier_connector.core.copies.copyplan import Addresses, CopyPlan, single_copies
from kvtier_connector.errors import DeviceError
from kvtier_connector.vllm.copies.copier import CopyResult
from kvtier_connector.vllm.upstream import dma
from kvtier_connector.vllm.upstream.compat import log

_MILLISECOND = 1e-3
_WORD_BYTES = 8
_MOST_CHUNK_BYTES = 8192


@dataclass(frozen=True, slots=True)
class _Job:
    job_id: int
    start: torch.cuda.Event
    parts: list[torch.cuda.Event] = field(default_factory=list)
    # The driver may read the descriptors until the copies have ended.
    descriptors: list[dma.Descriptors] = field(default_factory=list)

    @property
    def end(self) -> torch.cuda.Event:
        return self.parts[-1]


class CudaCopier:
    """Copies with vLLM's batched DMA operation."""

    def __init__(self) -> None:
        self._to_device = torch.cuda.Stream()
        self._from_device = torch.cuda.Stream()
        self._jobs: dict[bool, deque[_Job]] = {True: deque(), False: deque()}
        self._registered: list[int] = []
        self._piece_bytes = 0
        self.kernel_below_bytes = dma.KERNEL_BELOW_BYTES
        """Smaller copies to the device are a kernel's."""

    def register(self, address: int, size_bytes: int) -> str | None:
        """Page-lock a piece of the region for DMA; returns None, or why it could not.

        Pieces come one after another, all but the last of one size, so that it is known where copies must not
        go across two of them.
        """
        if not dma.host_register(address, size_bytes):
            return "cudaHostRegister refused"
        self._piece_bytes = self._piece_bytes or size_bytes
        self._registered.append(address)
        return None

    def start(self, job_id: int, plan: CopyPlan, *, to_device: bool) -> None:
        """Queue the job's copies behind the current stream and behind earlier jobs of the same direction."""
        self._queue(job_id, [plan], self._copy_batch, to_device=to_device)

    def start_load(self, job_id: int, parts: Sequence[CopyPlan]) -> None:
        """Queue a load's parts, one after another.

        Raises DeviceError: the driver takes the copies neither together nor one by one.
        """
        self._queue(job_id, parts, self._copy_somehow, to_device=True)

    def wait_on_device(self, job_id: int, part: int) -> None:
        """Have what is queued for the step from now on begin when a part of a load has been copied."""
        for job in self._jobs[True]:
            if job.job_id == job_id:
                torch.cuda.current_stream().wait_event(job.parts[part])

    def _queue(
        self,
        job_id: int,
        parts: Sequence[CopyPlan],
        copy: Callable[[dma.Descriptors, bool], None],
        *,
        to_device: bool,
    ) -> None:
        job = _Job(job_id, torch.cuda.Event(enable_timing=True))
        stream = self._to_device if to_device else self._from_device
        step = torch.cuda.current_stream()
        stream.wait_stream(step)
        try:
            with torch.cuda.stream(stream):
                job.start.record(stream)
                for part in parts:
                    descriptors = self._descriptors(part, to_device=to_device)
                    job.descriptors.append(descriptors)
                    if len(descriptors.sizes):
                        copy(descriptors, to_device)
                    job.parts.append(torch.cuda.Event(enable_timing=True))
                    job.end.record(stream)
        except BaseException:
            stream.synchronize()  # what was queued must not come later than what is computed in its place
            raise
        self._jobs[to_device].append(job)

    def _descriptors(self, plan: CopyPlan, *, to_device: bool) -> dma.Descriptors:
        copies = single_copies(plan, self._registered[0] if self._registered else 0, self._piece_bytes)
        source, target = (copies.region, copies.device) if to_device else (copies.device, copies.region)
        return dma.Descriptors(*map(torch.from_numpy, (source, target, copies.sizes)))

    def _copy_batch(self, copies: dma.Descriptors, to_device: bool) -> None:
        is_pinned = to_device and bool(self._registered)
        if is_pinned and (chunk_bytes := kernel_chunk_bytes(copies.sizes.numpy(), self.kernel_below_bytes)):
            dma.copy_by_kernel(copies, chunk_bytes=chunk_bytes)
            return
        # Host memory is not written by any stream, so a load's source may be read out of order; a store's
        # source is the live KV cache and may not.
        dma.copy_batch(copies, any_source_order=to_device)

    def _copy_somehow(self, copies: dma.Descriptors, to_device: bool) -> None:
        """Have a step that waits for it get its load: it cannot be taken back."""
        try:
            self._copy_batch(copies, to_device)
        except Exception as refusal:  # noqa: BLE001 - whatever it is, the ordinary copy may do
            log.warning(
                "kvtier: the driver refuses a batch of copies, which are made one by one: %s", refusal
            )
            try:
                dma.copy_singly(copies)
            except Exception as error:
                raise DeviceError(
                    f"the device takes no copies any more, and a step waits for them: {error}"
                ) from error

    def take_finished(self) -> list[CopyResult]:
        """Return the jobs that ended since the last call."""
        outcomes = []
        for jobs in self._jobs.values():
            while jobs and jobs[0].end.query():
                job = jobs.popleft()
                outcomes.append(CopyResult(job.job_id, job.start.elapsed_time(job.end) * _MILLISECOND))
        return outcomes

    def wait(self, job_ids: Iterable[int]) -> None:
        """Return when these jobs' copies have ended."""
        wanted = set(job_ids)
        for jobs in self._jobs.values():
            for job in jobs:
                if job.job_id in wanted:
                    job.end.synchronize()

    def pause(self, timeout_s: float) -> None:
        """Do nothing: a GPU's engine overlaps copies by itself, and an event cannot be awaited for a time."""

    def close(self) -> None:
        """End all copies, then release the page-locked memory."""
        self._to_device.synchronize()
        self._from_device.synchronize()
        for jobs in self._jobs.values():
            jobs.clear()
        while self._registered:
            dma.host_unregister(self._registered.pop())


def kernel_chunk_bytes(sizes: Addresses, below_bytes: int) -> int:
    """Return what a kernel is to copy at a time, of copies all below a size; 0 if they are the copy engine's.

    Pages of single layers are so small, where vLLM's attention keeps a layer's blocks together.
    """
    if sizes.max() >= below_bytes or (sizes % _WORD_BYTES).any():
        return 0
    return min(1 << (int(sizes.min()) - 1).bit_length(), _MOST_CHUNK_BYTES)
