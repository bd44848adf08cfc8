"""Copies where the device is a GPU: DMA on two streams of its own, one for each direction.

The order against the engine's own work is upstream's (vllm/v1/kv_offload/cpu/gpu_worker.py): a store waits
for the step that writes what it reads, a load for whatever was still to be written to the blocks it fills.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from vllm import _custom_ops as ops
from vllm.v1.kv_offload.cpu.host_register import host_register, host_unregister

from kvtier_connector.core.copyplan import Addresses, CopyPlan, single_copies
from kvtier_connector.vllm.copier import Outcome

_MILLISECOND = 1e-3


@dataclass(frozen=True, slots=True)
class _Job:
    job_id: int
    start: torch.cuda.Event
    end: torch.cuda.Event
    # The driver may read the descriptors until the copies have ended.
    descriptors: tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class CudaCopier:
    """Copies with vLLM's batched DMA operation."""

    def __init__(self) -> None:
        self._to_device = torch.cuda.Stream()
        self._from_device = torch.cuda.Stream()
        self._jobs: dict[bool, deque[_Job]] = {True: deque(), False: deque()}
        self._registered: list[int] = []
        self._piece_bytes = 0

    def register(self, address: int, size_bytes: int) -> str | None:
        """Page-lock a piece of the region for DMA; returns None, or why it could not.

        Pieces come one after another, all but the last of one size, so that it is known where copies must not
        go across two of them.
        """
        if not host_register(address, size_bytes):
            return "cudaHostRegister refused"
        self._piece_bytes = self._piece_bytes or size_bytes
        self._registered.append(address)
        return None

    def start(self, job_id: int, plan: CopyPlan, *, to_device: bool) -> None:
        """Queue the job's copies behind the current stream and behind earlier jobs of the same direction."""
        first = self._registered[0] if self._registered else 0
        copies = single_copies(plan, first, self._piece_bytes)
        source, target = (copies.region, copies.device) if to_device else (copies.device, copies.region)
        job = _Job(
            job_id,
            torch.cuda.Event(enable_timing=True),
            torch.cuda.Event(enable_timing=True),
            (_tensor(source), _tensor(target), _tensor(copies.sizes)),
        )
        stream = self._to_device if to_device else self._from_device
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            job.start.record(stream)
            if len(copies.sizes):
                # Host memory is not written by any stream, so a load's source may be read out of order; a
                # store's source is the live KV cache and may not.
                ops.swap_blocks_batch(*job.descriptors, is_src_access_order_any=to_device)
            job.end.record(stream)
        self._jobs[to_device].append(job)

    def finished(self) -> list[Outcome]:
        """Return the jobs that ended since the last call."""
        outcomes = []
        for jobs in self._jobs.values():
            while jobs and jobs[0].end.query():
                job = jobs.popleft()
                outcomes.append(Outcome(job.job_id, job.start.elapsed_time(job.end) * _MILLISECOND))
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
            host_unregister(self._registered.pop())


def _tensor(values: Addresses) -> torch.Tensor:
    return torch.from_numpy(values)
