"""Loads that are part of the step that needs them: the scheduler's side.

Upstream loads apart: a step that computes nothing begins the load, and a later one computes. On a CPU nothing
is gained by that, because copying and computing take the same cores, and the second round through the engine
costs more than a short load itself. So a step loads first and then computes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from vllm.config import CUDAGraphMode, VllmConfig
from vllm.forward_context import ForwardContext
from vllm.platforms import current_platform
from vllm.v1.core.kv_cache_manager import KVCacheBlocks
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig
from vllm.v1.kv_offload.base import ReqContext
from vllm.v1.request import Request

from kvtier_connector.vllm.logger import log
from kvtier_connector.vllm.offloading.transfer import SlotSpec
from kvtier_connector.vllm.upstream.classes import TransferJob
from kvtier_connector.vllm.upstream.scheduler import UpstreamJob, UpstreamScheduler

BYTES_PER_STEP: Final = 256 << 20
"""A rank's bytes that one step on a CPU loads: some 15 ms, for which the step's other requests wait."""
BYTES_PER_LAYERED_STEP: Final = 4 << 30
"""Those of a step on a GPU whose layers wait one by one: some 80 ms, beside which it computes."""


def sync_budget_tokens(vllm_config: VllmConfig, kv_cache_config: KVCacheConfig, *, layered: bool) -> int:
    """Return how many tokens one step may load; 0 where that gains nothing or a failure could not be mended.

    Args:
        vllm_config: vLLM's.
        kv_cache_config: vLLM's.
        layered: Whether a GPU's layers are to wait one by one; a line of the log says why they do not.
    """
    if not current_platform.is_cpu() and not layered:
        return 0
    if current_platform.is_cpu() and layered:
        log.warning("kvtier: layered_loads is off: a CPU's copies take the cores from what it computes")
    if reason := _why_not(vllm_config, kv_cache_config):
        if layered:
            log.warning("kvtier: layered_loads is off: %s", reason)
        return 0
    group = kv_cache_config.kv_cache_groups[0]
    spec = group.kv_cache_spec
    block_bytes: int = spec.page_size_bytes * len(group.layer_names)
    most_bytes = BYTES_PER_STEP if current_platform.is_cpu() else BYTES_PER_LAYERED_STEP
    return most_bytes // block_bytes * int(spec.block_size)


def _why_not(vllm_config: VllmConfig, kv_cache_config: KVCacheConfig) -> str:
    """Tell why a step must not load by itself.

    vLLM takes back a step whose load failed where no step is scheduled before the last one's result is known,
    and where a block's number says whose it is. Where it zeroes new blocks, it would zero what was loaded.
    """
    groups = kv_cache_config.kv_cache_groups
    if vllm_config.scheduler_config.async_scheduling:
        return "vLLM schedules steps ahead and cannot take one back; start it with --no-async-scheduling"
    if kv_cache_config.needs_kv_cache_zeroing:
        return "vLLM zeroes new blocks of this model"
    if len(groups) != 1 or not isinstance(groups[0].kv_cache_spec, FullAttentionSpec):
        return "this model has layers without full attention"
    return ""


def asks_for_layers(forward_context: ForwardContext) -> bool:
    """Tell whether a step asks for each layer's KV before it computes that: one CUDA graph does not."""
    mode = getattr(forward_context, "cudagraph_runtime_mode", CUDAGraphMode.NONE)
    is_one_graph = mode is CUDAGraphMode.FULL
    return forward_context.attn_metadata is not None and not is_one_graph


@dataclass(frozen=True, slots=True)
class SyncLoad:
    """A load in the step that is running.

    Attributes:
        job: Upstream's record of it.
        context: What the manager knows the request by whose prefix it is.
        root: Hash of the request's first block.
        block_ids: All device blocks of the request.
    """

    job: UpstreamJob
    context: ReqContext
    root: bytes
    block_ids: frozenset[int]


class SyncLoads:
    """Chooses the loads that a step does itself and keeps their books, which upstream would keep otherwise.

    Args:
        upstream: Plans all loads.
        budget_tokens: Tokens that one step may load; with 0 every load is upstream's.
    """

    def __init__(self, upstream: UpstreamScheduler, budget_tokens: int) -> None:
        self._upstream = upstream
        self._budget_tokens = budget_tokens
        self._left_tokens = budget_tokens
        self._running: dict[int, SyncLoad] = {}

    @property
    def are_on(self) -> bool:
        """Whether steps load at all."""
        return self._budget_tokens > 0

    def admits(self, request: Request, computed_tokens: int, tokens: int) -> bool:
        """Tell whether the step being scheduled can do a load; `plan` follows if it is scheduled.

        Args:
            request: Whose prefix it is.
            computed_tokens: Tokens that the device has already.
            tokens: Tokens to load.
        """
        # A step has to compute something: a prompt that is found as a whole is upstream's.
        return 0 < tokens <= self._left_tokens and computed_tokens + tokens < request.num_tokens

    def shares_blocks(self, request: Request) -> bool:
        """Tell whether a request begins like one whose load is running.

        vLLM lets it use the same device blocks in the same step. Should the load fail, it would compute on
        with what is not there.
        """
        return any(request.block_hashes[:1] == [load.root] for load in self._running.values())

    def plan(self, request: Request, blocks: KVCacheBlocks, tokens: int) -> None:
        """Have upstream plan the load of an admitted request, and take it out of its hands.

        Args:
            request: Whose prefix it is.
            blocks: All device blocks of the request.
            tokens: Tokens to load.
        """
        job_id, job = self._upstream.plan_load(
            request, blocks, tokens, lambda source: replace(source, is_sync=True)
        )
        self._left_tokens -= tokens
        self._running[job_id] = SyncLoad(
            job,
            self._upstream.context(request.request_id),
            request.block_hashes[0],
            frozenset(blocks.get_block_ids()[0]),
        )

    def renew_budget(self) -> None:
        """Give the next step all of its tokens."""
        self._left_tokens = self._budget_tokens

    def find(self, job_id: int) -> SyncLoad | None:
        """Return a running load, or None if the job is upstream's."""
        return self._running.get(job_id)

    def complete(self, completed_jobs: dict[int, int]) -> None:
        """Take the loads that ended out of a step's report: job -> number of ranks that have done it."""
        for job_id in self._running.keys() & completed_jobs.keys():
            load = self._running[job_id]
            if load.job.reported(completed_jobs.pop(job_id)):
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
