"""When the transfers have ended that a reset forgot, for a vLLM that does not tell the manager (0.32)."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from kvtier_connector.vllm.upstream.scheduler import UpstreamScheduler


class ResetFence:
    """Counts the workers' reports that are due since a reset.

    Args:
        scheduler: vLLM's, which is asked for them.
        on_flushed: Is called when the last of them has come, at once where none is due.
    """

    def __init__(self, scheduler: UpstreamScheduler, on_flushed: Callable[[], None]) -> None:
        self._scheduler = scheduler
        self._on_flushed = on_flushed
        self._due: dict[int, int] = {}

    @contextmanager
    def around_reset(self) -> Iterator[None]:
        """Begin to wait for the transfers that run, while vLLM forgets them."""
        due = self._scheduler.reports_due
        yield
        if self._scheduler.tells_when_flushed:
            return
        self._due |= due
        if not self._due:
            self._on_flushed()

    def reported(self, completed: Mapping[int, int]) -> None:
        """Take note of a step's reports: transfers, and how many workers have reported each."""
        if not self._due:
            return
        for job_id in self._due.keys() & completed.keys():
            self._due[job_id] -= completed[job_id]
            if self._due[job_id] <= 0:
                del self._due[job_id]
        if not self._due:
            self._on_flushed()
