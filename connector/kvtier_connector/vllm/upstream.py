"""The one place that touches what vLLM has not promised: inner parts of its offloading connector.

Each reach is a method that says what for. Where a vLLM has the parts elsewhere, the connector is refused when
it is made, with the names of what is missing, before a request has come.

Source: vLLM 0.32 and 0.33, scheduler.py and worker.py in
vllm/distributed/kv_transfer/kv_connector/v1/offloading.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from vllm import __version__ as vllm_version
from vllm.distributed.kv_transfer import kv_transfer_state
from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorBase_V1
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.common import TransferJob
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.scheduler import (
    OffloadingConnectorScheduler,
    RequestOffloadState,
    TransferJobStatus,
)
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.worker import OffloadingConnectorWorker

from kvtier_connector.errors import UnsupportedEngineError

SCHEDULER_PARTS: Final = (
    "_chunks_being_loaded",
    "_current_batch_allocated_block_ids",
    "_current_batch_jobs_to_flush",
    "_current_batch_load_jobs",
    "_jobs",
    "_req_status",
)
LOCK_PARTS: Final = ("_acquire_step", "_manager_locked", "_release_step")
"""Since 0.33, whose managers have a lock."""
WORKER_PARTS: Final = ("_connector_worker_meta", "_load_jobs", "_unsubmitted_store_jobs")


class UpstreamScheduler:
    """Inner parts of the scheduler's side.

    Raises:
        UnsupportedEngineError: it lacks some.
    """

    def __init__(self, scheduler: OffloadingConnectorScheduler) -> None:
        _require(scheduler, SCHEDULER_PARTS)
        self._has_lock = hasattr(getattr(scheduler, "manager", None), "lock")
        if self._has_lock:
            _require(scheduler, LOCK_PARTS)
        self._scheduler = scheduler

    def request(self, request_id: str) -> RequestOffloadState | None:
        """Return what it knows of a request; hooks get the request alone."""
        state: RequestOffloadState | None = self._scheduler._req_status.get(request_id)
        return state

    def job(self, job_id: int) -> TransferJobStatus | None:
        """Return a running transfer, whose chunks a failed one makes misses of."""
        job: TransferJobStatus | None = self._scheduler._jobs.get(job_id)
        return job

    def take_load(self, state: RequestOffloadState) -> tuple[int, TransferJobStatus]:
        """Take over the load that was just planned for a request; the step that needs it keeps its books."""
        job_id: int = state.transfer_jobs.pop()
        job: TransferJobStatus = self._scheduler._jobs.pop(job_id)
        if self._scheduler._chunks_being_loaded is not None:
            self._scheduler._chunks_being_loaded.difference_update(job.keys)
        return job_id, job

    @property
    def planned_loads(self) -> dict[int, TransferJob]:
        """Loads that go to the workers with the next step; who plans one may replace it."""
        loads: dict[int, TransferJob] = self._scheduler._current_batch_load_jobs
        return loads

    @property
    def has_orders(self) -> bool:
        """Whether something is to be sent to the workers from before the step was complete."""
        return bool(
            self._scheduler._current_batch_load_jobs
            or self._scheduler._current_batch_jobs_to_flush
            or self._scheduler._current_batch_allocated_block_ids
        )

    @property
    def reports_due(self) -> dict[int, int]:
        """Running transfers, and how many workers have to report each: a reset forgets them."""
        return {job_id: job.pending_count for job_id, job in self._scheduler._jobs.items()}

    @property
    def tells_when_flushed(self) -> bool:
        """Whether it tells the manager when all have been reported that a reset forgot: 0.33 does."""
        return hasattr(self._scheduler, "_reset_fence")

    @contextmanager
    def manager_held(self) -> Iterator[None]:
        """Hold the manager's lock in a hook that is no part of scheduling a step; 0.32 has no such lock."""
        if not self._has_lock:
            yield
            return
        with self._scheduler._manager_locked():
            yield

    def hold_manager_for_step(self) -> None:
        """Hold the manager's lock until the step's orders are built, as its own hooks do."""
        if self._has_lock:
            self._scheduler._acquire_step()

    def let_go_of_manager(self) -> None:
        """End a step whose orders it did not build."""
        if self._has_lock:
            self._scheduler._release_step()

    @property
    def is_alone_with_one_request(self) -> bool:
        """Whether the engine has one request and no transfers."""
        alive = (not state.req.is_finished() for state in self._scheduler._req_status.values())
        return not self._scheduler._jobs and sum(alive) == 1


class UpstreamWorker:
    """Inner parts of a worker's side.

    Raises:
        UnsupportedEngineError: it lacks some.
    """

    def __init__(self, worker: OffloadingConnectorWorker) -> None:
        _require(worker, WORKER_PARTS)
        self._worker = worker

    @property
    def has_stores_put_off(self) -> bool:
        """Whether it has stores to begin in the next step, which is not quiet then."""
        return bool(self._worker._unsubmitted_store_jobs)

    @property
    def requests_of_loads(self) -> dict[int, str | None]:
        """Whose each running load is, by job; it forgets a load when it reports that."""
        return dict(self._worker._load_jobs)

    def mark_completed(self, job_id: int) -> None:
        """Report a store as done that is not to be done, as it does for one that is not this rank's."""
        self._worker._connector_worker_meta.mark_completed(job_id)


def process_connector() -> KVConnectorBase_V1 | None:
    """Return this process's connector; vLLM's own function refuses where there is none."""
    return kv_transfer_state._KV_CONNECTOR_AGENT


def set_process_connector(connector: KVConnectorBase_V1 | None) -> None:
    """Put a connector in, or take it out; vLLM's only way is to end it."""
    kv_transfer_state._KV_CONNECTOR_AGENT = connector


def _require(owner: object, parts: Iterable[str]) -> None:
    missing = [part for part in parts if not hasattr(owner, part)]
    if missing:
        raise UnsupportedEngineError(
            f"vLLM {vllm_version}: its {type(owner).__name__} has no {' and no '.join(missing)}, which "
            "kvtier's connector needs; install a vLLM that kvtier supports, or a newer kvtier"
        )
