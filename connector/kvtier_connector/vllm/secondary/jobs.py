"""vLLM's jobs for a secondary tier, their keys, and memory that vLLM lends."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from vllm.v1.kv_offload.base import OffloadKey
from vllm.v1.kv_offload.tiering.base import TransferJob

from kvtier_connector.config import KEY_BYTES
from kvtier_connector.core.behind.progress import Progress

_MOMENT_S: Final = 1e-4


@dataclass(slots=True)
class Job:
    """One of vLLM's jobs."""

    number: int  # vLLM's name for it
    began_s: float  # when, by time.monotonic()
    loads: bool  # the direction: True from the tier to memory
    # the chunks that are under way, and their slots in memory
    waiting: dict[bytes, int] = field(default_factory=dict)
    done: list[bytes] = field(default_factory=list)  # the chunks that have arrived
    failed: bool = False  # whether some chunk has not


class Jobs:
    """The jobs of one tier. Within a direction, a chunk is in one job at a time.

    `take_back` is called with each slot in memory that the tier uses no more.
    """

    def __init__(self, take_back: Callable[[int], None]) -> None:
        self._take_back = take_back
        self._running = dict[int, Job]()
        self._job_of: dict[bool, dict[bytes, Job]] = {True: {}, False: {}}
        self._ended = list[Job]()
        self.given_up = set[bytes]()
        """Chunks that the tier still has under way, though no job waits for them."""

    def __bool__(self) -> bool:
        return bool(self._running)

    def begin(self, job: Job) -> None:
        """Add a job; one whose chunks are all settled already has ended."""
        self._running[job.number] = job
        self._job_of[job.loads].update(dict.fromkeys(job.waiting, job))
        self._end_if_settled(job)

    def waits_for(self, key: bytes, *, loads: bool) -> bool:
        """Tell whether a chunk is under way."""
        return key in self._job_of[loads]

    def give_up(self, job: Job) -> None:
        """Have a job end without the chunks that are still under way."""
        for key in list(job.waiting):
            self.given_up.add(key)
            self._end_chunk(key, loads=job.loads, arrived=False)

    def apply(self, progress: Progress) -> None:
        """Take the chunks that the tier is done with out of their jobs, which end with their last ones."""
        self.given_up.update(progress.lost)  # until they are in `ended`, too
        for keys, loads, arrived in (
            (progress.loaded, True, True),
            (progress.lost, True, False),
            (progress.stored, False, True),
            (progress.released, False, False),
        ):
            for key in keys:
                self._end_chunk(key, loads=loads, arrived=arrived)
        self.given_up.difference_update(progress.loaded, progress.ended, progress.released)

    def began_before(self, then_s: float) -> list[Job]:
        """Return the jobs that began before a moment and still run."""
        return [job for job in self._running.values() if job.began_s < then_s]

    def take_ended(self) -> list[Job]:
        """Return the jobs that have ended since the last call."""
        ended, self._ended = self._ended, []
        return ended

    def _end_chunk(self, key: bytes, *, loads: bool, arrived: bool) -> None:
        job = self._job_of[loads].pop(key, None)
        if job is None:
            return
        slot = job.waiting.pop(key)
        if arrived:
            job.done.append(key)
        else:
            job.failed = True
        self._end_if_settled(job)
        self._take_back(slot)

    def _end_if_settled(self, job: Job) -> None:
        if not job.waiting:
            del self._running[job.number]
            self._ended.append(job)


class TierKeys:
    """vLLM's keys, filled up to the tier's length, and back: those of one engine have one length."""

    def __init__(self) -> None:
        self._key_bytes = KEY_BYTES

    def in_tier(self, key: OffloadKey) -> bytes:
        """Return a key as the tier has it. Raises ValueError: it is longer than any that is known."""
        if len(key) > KEY_BYTES:
            raise ValueError(f"a key of {len(key)} bytes: the tier does not know this vLLM's hash")
        return bytes(key).ljust(KEY_BYTES, b"\0")

    def slots(self, job: TransferJob) -> dict[bytes, int]:
        """Return a job's chunks, as the tier has them, and their slots: from a prompt's root to its tail."""
        place = job.req_context.get_offload_key_position
        pairs = sorted(
            zip(job.keys, job.chunk_ids.tolist(), strict=True), key=lambda pair: place(pair[0]) or 0
        )
        self._key_bytes = max((len(key) for key in job.keys), default=self._key_bytes)
        return {bytes(key).ljust(KEY_BYTES, b"\0"): slot for key, slot in pairs}

    def of_vllm(self, keys: Iterable[bytes]) -> list[OffloadKey]:
        """Return keys as vLLM knows them."""
        return [OffloadKey(key[: self._key_bytes]) for key in keys]


class LentMemory:
    """vLLM's memory before the tier, of shape (rows, bytes of a row)."""

    def __init__(self, view: memoryview) -> None:
        self.rows = len(view)
        self.row_bytes = view.nbytes // self.rows
        self._memory = view.cast("B")  # a view with two dimensions has no view[row]
        self._lent = dict[int, memoryview]()

    def lend(self, row: int) -> tuple[memoryview, ...]:
        """Return a row's bytes, to be used until `take_back`."""
        start = row * self.row_bytes
        view = self._lent[row] = self._memory[start : start + self.row_bytes]
        return (view,)

    def take_back(self, row: int) -> None:
        """Have nobody touch a row any more: the memoryview that was lent is of no use from now on."""
        view = self._lent.pop(row, None)
        while view is not None:
            try:
                view.release()
            except BufferError:  # a copy or a checksum is under way, which waits for no disk
                time.sleep(_MOMENT_S)
            else:
                return

    def take_all_back(self) -> None:
        """Have nobody touch any row."""
        for row in list(self._lent):
            self.take_back(row)

    def close(self) -> None:
        """Let go of the memory itself."""
        self.take_all_back()
        self._memory.release()
