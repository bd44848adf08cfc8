"""Which of vLLM's jobs wait for which chunks: each is reported once, whatever becomes of its chunks."""

from collections.abc import Callable
from dataclasses import dataclass, field

from kvtier_connector.core.disk.report import Progress


@dataclass(slots=True)
class Job:
    """One of vLLM's jobs.

    Attributes:
        number: vLLM's name for it.
        began_s: When, by time.monotonic().
        loads: The direction: True from disk to memory.
        waiting: The chunks that are under way, and their slots in memory.
        done: The chunks that have arrived.
        failed: Whether some chunk has not.
    """

    number: int
    began_s: float
    loads: bool
    waiting: dict[bytes, int] = field(default_factory=dict)
    done: list[bytes] = field(default_factory=list)
    failed: bool = False


class Jobs:
    """The jobs of one tier. Within a direction, a chunk is in one job at a time.

    Args:
        take_back: Is called with each slot in memory that the tier uses no more.
    """

    def __init__(self, take_back: Callable[[int], None]) -> None:
        self._take_back = take_back
        self._running = dict[int, Job]()
        self._job_of: dict[bool, dict[bytes, Job]] = {True: {}, False: {}}
        self._ended = list[Job]()
        self.given_up = set[bytes]()
        """Chunks that the disk still has under way, though no job waits for them."""

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
        """Take the chunks that the disk is done with out of their jobs, which end with their last ones."""
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
