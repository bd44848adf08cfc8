"""What a worker needs from a device: copies that run beside the engine's step."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from kvtier_connector.core.copies.copyplan import CopyPlan


@dataclass(frozen=True, slots=True)
class CopyResult:
    """How a job ended.

    Attributes:
        job_id: Which job.
        seconds: How long its copies took.
        error: Why they failed, or None.
    """

    job_id: int
    seconds: float
    error: Exception | None = None


class Copier(Protocol):
    """Copies between the device and the region."""

    def start(self, job_id: int, plan: CopyPlan, *, to_device: bool) -> None:
        """Begin a job's copies and return at once. An exception here is the job's failure."""

    def take_finished(self) -> list[CopyResult]:
        """Return the jobs that ended since the last call."""

    def wait(self, job_ids: Iterable[int]) -> None:
        """Return when these jobs' copies have ended; `take_finished` still reports them."""

    def pause(self, timeout_s: float) -> None:
        """Return when some job has ended, or after the timeout: for steps with nothing else to do."""

    def close(self) -> None:
        """End all copies and release what they used."""
