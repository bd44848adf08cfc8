"""Loads that are part of the step that needs them: the scheduler's side.

Upstream loads apart: a step that computes nothing begins the load, and a later one computes. On a CPU nothing
is gained by that, because copying and computing take the same cores, and the second round through the engine
costs more than a short load itself. On a GPU a step's first layers compute while the others are copied.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import lcm
from typing import Final

from vllm.config import VllmConfig
from vllm.platforms import current_platform
from vllm.v1.core.kv_cache_manager import KVCacheBlocks
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, MambaSpec
from vllm.v1.kv_offload.base import ReqContext
from vllm.v1.request import Request

from kvtier_connector.vllm.behind.tiering import Tiering
from kvtier_connector.vllm.offloading.manager import KVTierManager
from kvtier_connector.vllm.offloading.steps import KVTierWorkerMetadata, SlotSpec
from kvtier_connector.vllm.upstream.compat import log
from kvtier_connector.vllm.upstream.engine import TransferJob
from kvtier_connector.vllm.upstream.offloading import UpstreamJob, UpstreamScheduler

BYTES_PER_STEP: Final = 256 << 20
"""A rank's bytes that one step on a CPU loads: some 15 ms, for which the step's other requests wait."""
BYTES_PER_LAYERED_STEP: Final = 4 << 30
"""Those of a step on a GPU whose layers wait one by one: some 80 ms, beside which it computes."""
Found = tuple[int | None, bool]
"""How many tokens the tiers have beyond the device's, None for a request that has to wait and be looked up
again; and whether they are loaded apart from the step that computes with them."""


@dataclass(frozen=True, slots=True)
class InStep:
    """What a step may load by itself."""

    budget_tokens: int  # 0 where that gains nothing, or could go wrong
    is_taken_back: bool = False  # whether vLLM computes a step again whose load fails
    boundary_tokens: int = 1  # a load ends at a multiple of these


def in_step(
    vllm_config: VllmConfig, kv_cache_config: KVCacheConfig, tokens_per_block: Sequence[int], *, layered: bool
) -> InStep:
    """Return what a step may load by itself.

    Args:
        vllm_config: the engine's.
        kv_cache_config: the same.
        tokens_per_block: of each KV cache group.
        layered: whether layers on a GPU may wait for their own part of a load.
    """
    if current_platform.is_cpu():
        if not _can_be_taken_back(vllm_config, kv_cache_config):
            return InStep(0)
        return InStep(_tokens_of(kv_cache_config, BYTES_PER_STEP), is_taken_back=True)
    if not layered:
        return InStep(0)
    specs = [group.kv_cache_spec for group in kv_cache_config.kv_cache_groups]
    if any(isinstance(spec, MambaSpec) for spec in specs):
        # vLLM moves them before it asks the connector for anything (v1/worker/gpu/model_runner.py)
        log.info("kvtier: this model keeps states, which vLLM needs before a step: its loads are apart")
        return InStep(0)
    # vLLM may write a block's last tokens before it asks for the layer: what is loaded fills whole blocks
    budget_tokens = _tokens_of(kv_cache_config, BYTES_PER_LAYERED_STEP)
    return InStep(budget_tokens, boundary_tokens=lcm(*tokens_per_block))


def _tokens_of(kv_cache_config: KVCacheConfig, most_bytes: int) -> int:
    """Return how many tokens have so many bytes in all groups; of windows there are less."""
    groups = kv_cache_config.kv_cache_groups
    token_bytes = sum(
        group.kv_cache_spec.page_size_bytes * len(group.layer_names) / group.kv_cache_spec.block_size
        for group in groups
    )
    return int(most_bytes / token_bytes)


def _can_be_taken_back(vllm_config: VllmConfig, kv_cache_config: KVCacheConfig) -> bool:
    """Tell whether vLLM can take back a step whose load failed.

    It does where no step is scheduled before the last one's result is known, and where a block's number says
    whose it is. Where it zeroes new blocks, it would zero what was loaded.
    """
    groups = kv_cache_config.kv_cache_groups
    return (
        not vllm_config.scheduler_config.async_scheduling
        and not kv_cache_config.needs_kv_cache_zeroing
        and len(groups) == 1
        and isinstance(groups[0].kv_cache_spec, FullAttentionSpec)
    )


@dataclass(frozen=True, slots=True)
class SyncLoad:
    """A load in the step that is running."""

    job: UpstreamJob  # upstream's record of it
    context: ReqContext  # what the manager knows the request by whose prefix it is
    root: bytes  # hash of the request's first block
    block_ids: frozenset[int]  # all device blocks of the request


class SyncLoads:
    """Chooses the loads that a step does itself, and keeps their books in upstream's place."""

    def __init__(self, upstream: UpstreamScheduler, in_step: InStep) -> None:
        self._upstream = upstream
        self._in_step = in_step
        self._left_tokens = in_step.budget_tokens
        self._running: dict[int, SyncLoad] = {}

    @property
    def are_on(self) -> bool:
        """Whether steps load at all."""
        return self._in_step.budget_tokens > 0

    @property
    def are_running(self) -> bool:
        """Whether a load has not been reported by all ranks yet."""
        return bool(self._running)

    def admits(self, request: Request, computed_tokens: int, tokens: int) -> bool:
        """Tell whether the step being scheduled can do a load; `plan` follows if it is scheduled."""
        # A step has to compute something: a prompt that is found as a whole is upstream's.
        end_tokens = computed_tokens + tokens
        is_whole = end_tokens % self._in_step.boundary_tokens == 0
        return 0 < tokens <= self._left_tokens and end_tokens < request.num_tokens and is_whole

    def shares_blocks(self, request: Request) -> bool:
        """Tell whether a request has to wait for one that begins like it, whose load may be taken back.

        vLLM lets it use the same device blocks in the same step. Should the load fail, it would compute on
        with what is not there.
        """
        if not self._in_step.is_taken_back:
            return False
        return any(request.block_hashes[:1] == [load.root] for load in self._running.values())

    def plan(self, request: Request, blocks: KVCacheBlocks, tokens: int) -> None:
        """Have upstream plan the load of an admitted request, and take it out of its hands."""
        job_id, job = self._upstream.plan_load(
            request, blocks, tokens, lambda source: replace(source, is_sync=True)
        )
        self._left_tokens -= tokens
        self._running[job_id] = SyncLoad(
            job,
            self._upstream.context(request.request_id),
            request.block_hashes[0],
            frozenset(chain.from_iterable(blocks.get_block_ids())),
        )

    def renew_budget(self) -> None:
        """Give the next step all of its tokens."""
        self._left_tokens = self._in_step.budget_tokens

    def give_back(self) -> None:
        """Have upstream forget what still runs, with all else that a reset forgets."""
        self._upstream.give_back({job_id: load.job for job_id, load in self._running.items()})
        self._running.clear()

    def find(self, job_id: int) -> SyncLoad | None:
        """Return a running load, or None if the job is upstream's."""
        return self._running.get(job_id)

    def complete(self, completed_jobs: dict[int, int]) -> None:
        """Take the loads that ended out of a step's report: job -> number of ranks that have done it."""
        for job_id in self._running.keys() & completed_jobs.keys():
            load = self._running[job_id]
            if load.job.add_reports(completed_jobs.pop(job_id)):
                self._upstream.manager.complete_load(load.job.keys, load.context)
                del self._running[job_id]


def jobs_being_read(jobs: Mapping[int, TransferJob]) -> list[int]:
    """Return those of a step's loads whose chunks may still be being read from disk."""
    return [job_id for job_id, job in jobs.items() if job.src_spec.tickets is not None]


def sync_jobs(jobs: dict[int, TransferJob]) -> dict[int, TransferJob]:
    """Return those of a step's loads that it has to have done before it computes."""
    return {
        job_id: job
        for job_id, job in jobs.items()
        if isinstance(job.src_spec, SlotSpec) and job.src_spec.is_sync
    }


class Lookups:
    """Looks requests up, one after the other."""

    def __init__(
        self,
        upstream: UpstreamScheduler,
        manager: KVTierManager,
        sync_loads: SyncLoads,
        match: Callable[[Request, int], Found],
    ) -> None:
        self._upstream = upstream
        self._manager = manager
        self._sync_loads = sync_loads
        self._match = match
        self._last_touched = ""
        self.sync_request_id = ""
        """Of the request that was looked up last, if the step itself loads what was found; else empty."""

    def look_up(self, request: Request, computed_tokens: int) -> Found:
        """Tell what the tiers have of a request."""
        if self._sync_loads.shares_blocks(request):
            return None, False
        self._upstream.hold_manager_for_step()
        behind = self._manager.behind
        if behind is not None:
            behind.poll()
        tokens, apart = self._match(request, computed_tokens)
        if tokens is None and behind is not None and self._upstream.is_alone_with_one_request:
            # Nobody else would be served by another round through the engine.
            for _ in range(1 + behind.are_asked):
                behind.on_schedule_end(in_parts=True)
                tokens, apart = self._match_ahead(behind, request, computed_tokens)
                if tokens is None:
                    behind.wait()
                    tokens, apart = self._match(request, computed_tokens)
                if tokens is not None:
                    break
        if tokens is not None:
            self._count_asked(request, computed_tokens)
            if computed_tokens:
                self._touch(request.request_id, computed_tokens)
        is_sync = self._sync_loads.admits(request, computed_tokens, tokens or 0)
        self.sync_request_id = request.request_id if is_sync else ""
        return tokens, apart and not is_sync

    def _match_ahead(self, behind: Tiering, request: Request, computed_tokens: int) -> Found:
        """Find what is being read for a request, if a step can load it meanwhile."""
        if not behind.reads_in_parts:
            return None, False
        with behind.ahead(request.request_id):
            tokens, apart = self._match(request, computed_tokens)
        admitted = self._sync_loads.admits(request, computed_tokens, tokens or 0)
        return (tokens, apart) if tokens and admitted and behind.is_quick(tokens) else (None, False)

    def _count_asked(self, request: Request, computed_tokens: int) -> None:
        context = self._upstream.context(request.request_id)
        if context is not None:
            lacking = request.num_tokens - computed_tokens
            self._manager.count_asked(lacking, request.num_preemptions, context)

    def _touch(self, request_id: str, computed_tokens: int) -> None:
        """Have the tiers know what a request found on the device: upstream tells them nothing of it."""
        if request_id == self._last_touched:
            return  # it waits for blocks, and is asked for in every step
        self._last_touched = request_id
        context = self._upstream.context(request_id)
        for keys in self._upstream.keys(request_id, computed_tokens):
            if keys:
                self._manager.touch(keys, context)


class Failures:
    """Makes misses of the chunks of an engine's failed transfers."""

    def __init__(
        self,
        upstream: UpstreamScheduler,
        manager: KVTierManager,
        sync_loads: SyncLoads,
        evict_blocks: Callable[[frozenset[int]], None],
    ) -> None:
        self._upstream = upstream
        self._manager = manager
        self._sync_loads = sync_loads
        self._evict_blocks = evict_blocks

    def take(self, report: KVTierWorkerMetadata) -> None:
        """Make misses of what failed before it is completed."""
        if self._manager.behind is not None:
            self._manager.behind.poll()  # a load may have ended that was ahead of what is known here
        for job_id in report.failed_jobs:
            self._forget(job_id)

    def _forget(self, job_id: int) -> None:
        """Invalidate a failed job's chunks, and have its request offer them again once computed."""
        sync_load = self._sync_loads.find(job_id)
        job = sync_load.job if sync_load else self._upstream.job(job_id)
        if job is None:
            return  # a job from before a cache reset
        if sync_load:
            # Until they are computed again, nobody else may find these blocks in the device's cache.
            self._evict_blocks(sync_load.block_ids)
        self._manager.invalidate(job.keys)
        if sync_load:
            self._upstream.count_as_computed(job.request_id)
        self._upstream.offer_again(job.request_id)
