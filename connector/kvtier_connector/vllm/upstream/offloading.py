"""Inner parts of vLLM's offloading connector, in the scheduler and in the workers.

Source: vLLM 0.32 and 0.33, scheduler.py and worker.py in
vllm/distributed/kv_transfer/kv_connector/v1/offloading.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any, Final

from vllm.distributed.kv_transfer.kv_connector.v1.offloading.scheduler import (
    OffloadingConnectorScheduler,
    TransferJobStatus,
)
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.worker import OffloadingConnectorWorker
from vllm.v1.core.kv_cache_manager import KVCacheBlocks
from vllm.v1.core.kv_cache_utils import KVCacheBlock
from vllm.v1.kv_offload.base import (
    LoadStoreSpec,
    OffloadingManager,
    OffloadingWorker,
    OffloadKey,
    ReqContext,
    make_offload_key,
)
from vllm.v1.request import Request

from kvtier_connector.vllm.upstream.compat import require_attributes
from kvtier_connector.vllm.upstream.engine import OffloadingConnectorMetadata, TransferJob

ATTRIBUTES: Final = (
    "_chunks_being_loaded",
    "_current_batch_allocated_block_ids",
    "_current_batch_jobs_to_flush",
    "_current_batch_load_jobs",
    "_jobs",
    "_req_status",
    "config",
    "manager",
)
_LOCK_ATTRIBUTES: Final = ("_acquire_step", "_manager_locked", "_release_step")
"""Since 0.33, whose managers have a lock."""
_NO_LOCK: Final = nullcontext()
_WORKER_ATTRIBUTES: Final = (
    "_connector_worker_meta",
    "_load_jobs",
    "_unsubmitted_store_jobs",
    "spec",
    "worker",
)


class UpstreamJob:
    """A transfer that runs."""

    def __init__(self, status: TransferJobStatus) -> None:
        self.status = status
        self.request_id: str = status.req_id
        self.keys: set[OffloadKey] = status.keys

    def add_reports(self, workers: int) -> bool:
        """Take note of how many workers have done it, and tell whether all have."""
        self.status.pending_count -= workers
        return not self.status.pending_count


class UpstreamScheduler:
    """vLLM's side in the scheduler."""

    def __init__(self, scheduler: OffloadingConnectorScheduler) -> None:
        require_attributes(scheduler, ATTRIBUTES)
        self._has_lock = hasattr(scheduler.manager, "lock")
        if self._has_lock:
            require_attributes(scheduler, _LOCK_ATTRIBUTES)
        self._scheduler = scheduler

    @property
    def manager(self) -> OffloadingManager:
        """The manager that the spec made."""
        return self._scheduler.manager

    @property
    def tokens_per_chunk(self) -> tuple[int, ...]:
        """Tokens of a chunk of each KV cache group."""
        return tuple(group.tokens_per_chunk for group in self._scheduler.config.kv_group_configs)

    @property
    def tokens_per_block(self) -> tuple[int, ...]:
        """Tokens of an engine's block of each KV cache group."""
        return tuple(group.tokens_per_block for group in self._scheduler.config.kv_group_configs)

    # ---- requests ----

    def context(self, request_id: str) -> ReqContext | None:
        """Return what the manager knows a request by; hooks get the request alone."""
        state = self._scheduler._req_status.get(request_id)
        return state and state.req_context

    def keys(self, request_id: str, tokens: int) -> list[list[OffloadKey]]:
        """Return the chunks of each KV cache group that a request's first tokens fill."""
        state = self._scheduler._req_status.get(request_id)
        if state is None:
            return []
        groups = zip(self.tokens_per_chunk, state.group_states, strict=True)
        return [group.offload_keys[: tokens // chunk_tokens] for chunk_tokens, group in groups]

    @property
    def requests(self) -> list[tuple[Request, ReqContext]]:
        """All requests, with what the manager knows them by; also finished ones that may still be stored."""
        return [(state.req, state.req_context) for state in self._scheduler._req_status.values()]

    def chunks_of(self, request: Request) -> list[tuple[int, OffloadKey]]:
        """Return the chunks that a prompt fills in all KV cache groups, and where each ends, in tokens."""
        groups = self._scheduler.config.kv_group_configs
        return sorted(
            (number * group.tokens_per_chunk, make_offload_key(block_hash, group.group_idx))
            for group in groups
            for number, block_hash in enumerate(
                request.block_hashes[group.hashes_per_chunk - 1 :: group.hashes_per_chunk], 1
            )
        )

    def keys_within(self, request: Request) -> list[OffloadKey]:
        """Return every key under which a part of a prompt may be, also those of its last, short chunk."""
        groups = [group.group_idx for group in self._scheduler.config.kv_group_configs]
        return [
            make_offload_key(block_hash, group) for block_hash in request.block_hashes for group in groups
        ]

    def offer_again(self, request_id: str) -> None:
        """Have a request offer all of its chunks again, once they are computed."""
        state = self._scheduler._req_status.get(request_id)
        if state is not None:
            for group in state.group_states:
                group.next_stored_chunk_idx = 0

    def count_as_computed(self, request_id: str) -> None:
        """Take a load back out of vLLM's figures, which counted it when its step was planned."""
        state = self._scheduler._req_status.get(request_id)
        stats = getattr(state and state.req, "prefill_stats", None)  # figures are no reason to die
        if stats is not None:
            stats.set(stats.num_prompt_tokens, stats.num_local_cached_tokens, 0)

    @property
    def is_alone_with_one_request(self) -> bool:
        """Whether the engine has one request and no transfers."""
        alive = (not state.req.is_finished() for state in self._scheduler._req_status.values())
        return not self._scheduler._jobs and sum(alive) == 1

    # ---- transfers ----

    def job(self, job_id: int) -> UpstreamJob | None:
        """Return a running transfer, whose chunks a failed one makes misses of."""
        status = self._scheduler._jobs.get(job_id)
        return status and UpstreamJob(status)

    def plan_load(
        self,
        request: Request,  # whose prefix it is
        blocks: KVCacheBlocks,  # all device blocks of the request
        tokens: int,  # tokens to load
        # changes what workers are told of where the chunks are
        mark: Callable[[LoadStoreSpec], LoadStoreSpec],
    ) -> tuple[int, UpstreamJob]:
        """Have a load planned, and return its number and it: whoever asked keeps its books.

        Raises KeyError: the request was never looked up.
        """
        scheduler = self._scheduler
        state = scheduler._req_status[request.request_id]
        local_tokens = state.num_locally_computed_tokens
        firsts = {
            group.group_idx: -(-local_tokens // group.tokens_per_block)
            for group in scheduler.config.kv_group_configs
        }
        scheduler.update_state_after_alloc(request, _with_unfilled(blocks, firsts), tokens)
        job_id: int = state.transfer_jobs.pop()
        status: TransferJobStatus = scheduler._jobs.pop(job_id)
        if scheduler._chunks_being_loaded is not None:
            scheduler._chunks_being_loaded.difference_update(status.keys)
        planned = scheduler._current_batch_load_jobs
        planned[job_id] = replace(planned[job_id], src_spec=mark(planned[job_id].src_spec))
        return job_id, UpstreamJob(status)

    def give_back(self, loads: Mapping[int, UpstreamJob]) -> None:
        """Have a reset forget loads as if they had never been taken out of vLLM's hands."""
        self._scheduler._jobs.update({job_id: job.status for job_id, job in loads.items()})

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

    # ---- the manager's lock ----

    def hold_manager(self) -> AbstractContextManager[None]:
        """Hold the manager's lock in a hook that is no part of scheduling a step; 0.32 has no such lock."""
        held: AbstractContextManager[None] = self._scheduler._manager_locked() if self._has_lock else _NO_LOCK
        return held

    def hold_manager_for_step(self) -> None:
        """Hold the manager's lock until the step's orders are built, as its own hooks do."""
        if self._has_lock:
            self._scheduler._acquire_step()

    def let_go_of_manager(self) -> None:
        """End a step whose orders it did not build."""
        if self._has_lock:
            self._scheduler._release_step()


def _with_unfilled(blocks: KVCacheBlocks, firsts: Mapping[int, int]) -> KVCacheBlocks:
    """Return a request's blocks with one in each group, from which on they are to be filled, without a hash.

    That is how upstream tells them apart. vLLM gives the blocks of a load that nobody waits for their hashes
    at once. `firsts` has the place of the first block of each group that the device did not have.
    """
    groups = []
    for group, of_group in enumerate(blocks.blocks):
        filled = list(of_group)
        for place in range(firsts.get(group, len(filled)), len(filled)):
            if not filled[place].is_null:  # what a window has left behind has no block
                filled[place] = KVCacheBlock(filled[place].block_id)
                break
        groups.append(filled)
    return KVCacheBlocks(tuple(groups))


class ResetFence:
    """Counts the workers' reports that are due since a reset, for a vLLM that does not tell (0.32).

    `on_flushed` is called when the last of them has come, at once where none is due.
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

    def take_reports(self, completed: Mapping[int, int]) -> None:
        """Take note of a step's reports: transfers, and how many workers have reported each."""
        if not self._due:
            return
        for job_id in self._due.keys() & completed.keys():
            self._due[job_id] -= completed[job_id]
            if self._due[job_id] <= 0:
                del self._due[job_id]
        if not self._due:
            self._on_flushed()


class UpstreamWorker:
    """vLLM's side in a worker."""

    def __init__(self, worker: OffloadingConnectorWorker) -> None:
        require_attributes(worker, _WORKER_ATTRIBUTES)
        self._worker = worker

    @property
    def spec(self) -> Any:  # noqa: ANN401 - vLLM has no types
        """The spec that vLLM made in this process; kvtier's."""
        return self._worker.spec

    @property
    def worker(self) -> OffloadingWorker | None:
        """What the spec made of the KV caches; None before there are any."""
        return self._worker.worker

    @property
    def has_stores_put_off(self) -> bool:
        """Whether it has stores to begin in the next step, which has transfers then."""
        return bool(self._worker._unsubmitted_store_jobs)

    @property
    def requests_of_loads(self) -> dict[int, str | None]:
        """Whose each running load is, by job; it forgets a load when it reports that."""
        return dict(self._worker._load_jobs)

    def begin(self, loads: Mapping[int, TransferJob]) -> None:
        """Begin loads before the step's own hook does; vLLM waits for none of them."""
        orders = OffloadingConnectorMetadata(dict(loads), store_jobs={}, jobs_to_flush=None)
        self._worker.start_kv_transfers(orders)
        for job_id in loads:
            self._worker._load_jobs[job_id] = None

    def mark_completed(self, job_id: int) -> None:
        """Report a store as done that is not to be done, as it does for one that is not this rank's."""
        self._worker._connector_worker_meta.mark_completed(job_id)
