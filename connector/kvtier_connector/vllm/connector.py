"""The connector that vLLM loads: upstream's OffloadingConnector, which a failed load does not kill.

Upstream's scheduler keeps the hard parts: hybrid models, tensor parallelism, partial chunks, fences against
reusing device blocks whose store is in flight. What is added here: settings are parsed strictly, a failed
transfer makes its chunks a miss and the request is computed instead, a step on a CPU does a short load
itself, and steps without work wait for copies.
"""

from typing import Any, Final

import torch
from typing_extensions import override
from vllm.config import VllmConfig
from vllm.distributed.kv_transfer.kv_connector.v1 import KVConnectorRole
from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorHandshakeMetadata,
    KVConnectorMetadata,
    KVConnectorTransferResults,
)
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.common import (
    OffloadingConnectorMetadata,
    TransferJob,
)
from vllm.distributed.kv_transfer.kv_connector.v1.offloading_connector import OffloadingConnector
from vllm.forward_context import ForwardContext
from vllm.platforms import current_platform
from vllm.v1.core.kv_cache_manager import KVCacheBlocks
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.kv_cache_interface import KVCacheConfig
from vllm.v1.outputs import KVConnectorOutput
from vllm.v1.request import Request

from kvtier_connector.complete import refusals
from kvtier_connector.config import parse_extra_config
from kvtier_connector.core.region.growth_words import GrowthWords, together
from kvtier_connector.errors import SettingError
from kvtier_connector.vllm.copies.layer_places import layer_places
from kvtier_connector.vllm.disk.open import open_tier_behind_region
from kvtier_connector.vllm.disk.tiering import DiskTiering, KeptOffDisk
from kvtier_connector.vllm.fingerprint import key_bytes
from kvtier_connector.vllm.offloading.block_hash import warn_of_weak_hash
from kvtier_connector.vllm.offloading.manager import KVTierManager
from kvtier_connector.vllm.offloading.prefill_clock import PrefillClock
from kvtier_connector.vllm.offloading.reset_fence import ResetFence
from kvtier_connector.vllm.offloading.state_chunks import warn_of_states
from kvtier_connector.vllm.offloading.steps_without_transfers import (
    NO_TRANSFERS,
    grain_tokens,
    with_transfers,
)
from kvtier_connector.vllm.offloading.sync_loads import (
    SyncLoads,
    asks_for_layers,
    sync_budget_tokens,
    sync_jobs,
)
from kvtier_connector.vllm.offloading.transfer import (
    KVTierWorkerMetadata,
    NumberedOrders,
    WorkerOffer,
    numbered,
)
from kvtier_connector.vllm.offloading.worker import KVTierWorker
from kvtier_connector.vllm.upstream import UpstreamScheduler, UpstreamWorker

_IDLE_WAIT_S: Final = 0.05
"""Long enough that an engine which waits for a load takes no core from its copies, short enough that a new
request does not notice."""


class KVTierConnector(OffloadingConnector):  # type: ignore[misc] # vLLM has no types
    """A CPU tier behind the engine's prefix cache."""

    def __init__(
        self, vllm_config: VllmConfig, role: KVConnectorRole, kv_cache_config: KVCacheConfig
    ) -> None:
        transfer = vllm_config.kv_transfer_config
        self._settings = parse_extra_config(transfer.kv_connector_extra_config)
        if transfer.kv_load_failure_policy != "recompute":
            raise SettingError(
                f"kv_load_failure_policy: got {transfer.kv_load_failure_policy!r}, must be 'recompute': "
                "a failed load is a miss"
            )
        super().__init__(vllm_config, role, kv_cache_config)
        # The workers' side.
        if self.connector_worker is not None:
            self._upstream_worker = UpstreamWorker(self.connector_worker)
        self._idle_step = False
        self._steps = frozenset[int]()
        self._failed_jobs: set[int] = set()
        self._within_step: dict[int, TransferJob] = {}
        self._behind = list[int]()
        self._unfilled_block_ids: set[int] = set()
        # The scheduler's side.
        if self.connector_scheduler is not None:
            warn_of_weak_hash(vllm_config.cache_config.prefix_caching_hash_algo)
            warn_of_states(kv_cache_config, self._settings.blocks_per_chunk)
            self._upstream = UpstreamScheduler(self.connector_scheduler)
            layered = self._settings.layered_loads
            budget_tokens = sync_budget_tokens(vllm_config, kv_cache_config, layered=layered)
            self._fence = ResetFence(self._manager.on_reset_flushed)
            self._sync_loads = SyncLoads(self.connector_scheduler, self._upstream, budget_tokens)
            self._growing: list[GrowthWords] = []
            self._admitted = False
            self._grain_tokens = grain_tokens(self.connector_scheduler.config)
            self._prefill: PrefillClock | None = None
            self._last_touched = ""

    @classmethod
    @override
    def get_required_kvcache_layout(cls, vllm_config: VllmConfig) -> str | None:
        """Prefer block-major KV caches: one copy per block instead of one per block and layer."""
        return None if current_platform.is_cpu() else "BLHNC"

    # ---- in the workers ----

    @override
    def register_kv_caches(self, kv_caches: dict[str, torch.Tensor]) -> None:
        """Take over the engine's caches, of whose layout vLLM's own worker keeps less."""
        self.connector_worker.spec.layer_places = layer_places(kv_caches, self._kv_cache_config)
        super().register_kv_caches(kv_caches)

    @override
    def handle_preemptions(self, kv_connector_metadata: OffloadingConnectorMetadata) -> None:
        """Finish the stores whose device blocks this step reuses, and begin the loads that it computes with.

        They run while vLLM prepares the step's input.
        """
        self._within_step = {}
        if self._is_quiet(kv_connector_metadata):
            return
        super().handle_preemptions(kv_connector_metadata)
        self._within_step = sync_jobs(kv_connector_metadata.load_jobs)
        if self._within_step:
            loads = OffloadingConnectorMetadata(self._within_step, store_jobs={}, jobs_to_flush=None)
            self.connector_worker.start_kv_transfers(loads)

    @override
    def start_load_kv(self, forward_context: ForwardContext, **kwargs: Any) -> None:
        """Begin the other loads and the last step's stores, and end the loads that the step computes with.

        Those of which a part is still being read from disk end when a layer needs that.
        """
        self._idle_step = forward_context.attn_metadata is None
        metadata = self._connector_metadata
        if isinstance(metadata, NumberedOrders):
            self._steps |= {metadata.step}
        if self._is_quiet(metadata):
            return
        for job_id in self._within_step:
            del metadata.load_jobs[job_id]
        super().start_load_kv(forward_context, **kwargs)
        if asks_for_layers(forward_context):
            self._behind = self._worker.in_parts(self._within_step)
        if not self._behind:
            self._end_step_loads(has_computed=False)

    @override
    def wait_for_layer_load(self, layer_name: str) -> None:
        """Have a layer wait for its part of what is still being read from disk, or copied to a GPU."""
        if not self._behind:
            return
        layer = self._kv_cache_config.kv_cache_groups[0].layer_names.index(layer_name)
        if self._worker.wait_for_layer(self._behind, layer):
            self._end_step_loads(has_computed=True)

    @override
    def wait_for_save(self) -> None:
        """Plan the step's stores, of whose blocks all is known now."""
        if self._behind:
            self._end_step_loads(has_computed=True)
        super().wait_for_save()

    def _end_step_loads(self, *, has_computed: bool) -> None:
        self._behind = []
        if self._within_step:
            for job_id in self._worker.finish(self._within_step, has_computed=has_computed):
                self._take_back(self._connector_metadata, self._within_step[job_id])

    def _is_quiet(self, metadata: OffloadingConnectorMetadata) -> bool:
        """Tell whether a step has no orders, and the last one has left none."""
        return metadata is NO_TRANSFERS and not self._upstream_worker.has_stores_put_off

    def _take_back(self, metadata: OffloadingConnectorMetadata, load: TransferJob) -> None:
        """Have vLLM compute again what this step computes on a failed load, and keep none of it."""
        self._unfilled_block_ids.update(int(block) for block in load.dst_spec.block_ids)
        for job_id, store in list(metadata.store_jobs.items()):
            if store.req_id == load.req_id:
                del metadata.store_jobs[job_id]
                self._failed_jobs.add(job_id)
                self._upstream_worker.mark_completed(job_id)

    @override
    def get_handshake_metadata(self) -> WorkerOffer:
        """Tell the scheduler's process of this rank's part of the tier, which grows from now on.

        vLLM asks when its worker has warmed up.
        """
        self._worker.grow()
        spec = self.connector_worker.spec
        return WorkerOffer(spec.growth_path, spec.region_offer)

    @override
    def get_block_ids_with_load_errors(self) -> set[int]:
        """Return the device blocks that a failed load of this step has left unfilled."""
        unfilled, self._unfilled_block_ids = self._unfilled_block_ids, set()
        return unfilled

    @override
    def get_transfer_results(self, finished_req_ids: set[str]) -> KVConnectorTransferResults:
        """Report the transfers that ended, and the requests whose load failed."""
        worker = self._worker
        if self._behind:  # with speculative decoding, vLLM waits for the step's stores later
            self._end_step_loads(has_computed=True)
        if not worker.busy:
            return KVConnectorTransferResults()
        if self._idle_step:
            worker.pause(_IDLE_WAIT_S)
        request_of_load = self._upstream_worker.requests_of_loads
        sent, received = self.get_finished(finished_req_ids)
        failed = worker.take_failed()
        self._failed_jobs |= failed
        failed_requests = {request_of_load[job_id] for job_id in failed & request_of_load.keys()}
        # vLLM waits for none of these: their requests have computed in this very step.
        computed = {job.req_id for job in self._within_step.values()}
        return KVConnectorTransferResults(sent, received - computed, failed_requests - computed - {None})

    @override
    def build_connector_worker_meta(self) -> KVTierWorkerMetadata | None:
        """Report the completed jobs, which of them failed, and the step if that is measured."""
        meta = super().build_connector_worker_meta()
        steps, self._steps = self._steps, frozenset()
        if meta is None:
            return KVTierWorkerMetadata(steps=steps) if steps else None
        failed, self._failed_jobs = self._failed_jobs, set()
        return KVTierWorkerMetadata(meta.completed_jobs, meta.transfer_stats, failed, steps)

    @property
    def _worker(self) -> KVTierWorker:
        worker = self.connector_worker.worker
        if not isinstance(worker, KVTierWorker):
            raise TypeError(f"the worker is a {type(worker).__name__}, not kvtier's")
        return worker

    # ---- in the scheduler ----

    @override
    def set_xfer_handshake_metadata(self, metadata: dict[int, KVConnectorHandshakeMetadata]) -> None:
        """Follow how the workers' slices grow, and open the disk tier behind them."""
        offers = [offer for offer in metadata.values() if isinstance(offer, WorkerOffer)]
        self._growing = [GrowthWords.attach(offer.growth) for offer in offers]
        with self._upstream.manager_held():
            self._grow()
            self._put_disk_behind(offers)

    def _put_disk_behind(self, offers: list[WorkerOffer]) -> None:
        regions = [offer.region for offer in offers if offer.region is not None]
        if not self._settings.disk_path or not regions:
            return
        manager = self._manager
        config = self._vllm_config
        offer = regions[0]
        with refusals():
            disk = open_tier_behind_region(
                self._settings, manager.geometry, config, self._kv_cache_config, offer
            )
        manager.put_behind(
            disk,
            key_bytes(config),
            most_tokens=config.model_config.max_model_len,
            part_ends=offer.part_ends if self._sync_loads.are_on else (),
        )
        if manager.disk is not None:
            self._prefill = PrefillClock(manager.disk.prefill)

    def _grow(self) -> None:
        """Take note of how far the slices have grown, until no more comes."""
        if self._growing:
            grown = together(self._growing, self._manager.geometry.slices)
            self._manager.grow(grown)
            if grown.is_over:
                self._growing.clear()

    @override
    def on_new_request(self, request: Request) -> None:
        """Take note of a request whose blocks another start could not tell from others."""
        super().on_new_request(request)
        if request.lora_request is not None:
            # Its key names the adapter, not the weights in it.
            state = self._upstream.request(request.request_id)
            if state is not None:
                state.req_context.set_state(KeptOffDisk())

    @override
    def get_num_new_matched_tokens(
        self, request: Request, num_computed_tokens: int
    ) -> tuple[int | None, bool]:
        """Tell how many more tokens the tier has, and whether the request has to wait for them."""
        if self._sync_loads.shares_blocks(request):
            return None, False
        self._upstream.hold_manager_for_step()
        disk = self._manager.disk
        if disk is not None:
            disk.poll()
        tokens, apart = super().get_num_new_matched_tokens(request, num_computed_tokens)
        if tokens is None and disk is not None and self._upstream.is_alone_with_one_request:
            # Nobody else would be served by another round through the engine.
            disk.on_schedule_end(in_parts=True)
            tokens, apart = self._match_ahead(disk, request, num_computed_tokens)
            if tokens is None:
                disk.wait()
                tokens, apart = super().get_num_new_matched_tokens(request, num_computed_tokens)
        if tokens is not None and num_computed_tokens:
            self._touch(request.request_id, num_computed_tokens)
        self._admitted = self._sync_loads.admits(request, num_computed_tokens, tokens or 0)
        return tokens, apart and not self._admitted

    def _match_ahead(
        self, disk: DiskTiering, request: Request, computed_tokens: int
    ) -> tuple[int | None, bool]:
        """Find what is being read for a request, if a step can load it meanwhile."""
        if not disk.reads_in_parts:
            return None, False
        with disk.ahead(request.request_id):
            tokens, apart = super().get_num_new_matched_tokens(request, computed_tokens)
        admitted = self._sync_loads.admits(request, computed_tokens, tokens or 0)
        return (tokens, apart) if admitted and disk.is_quick(tokens) else (None, False)

    def _touch(self, request_id: str, computed_tokens: int) -> None:
        """Have the tiers know what a request found on the device: upstream tells them nothing of it."""
        if request_id == self._last_touched:
            return  # it waits for room, and is asked for in every step
        self._last_touched = request_id
        state = self._upstream.request(request_id)
        if state is None:
            return
        for config, group in zip(self.scheduler.config.kv_group_configs, state.group_states, strict=True):
            keys = group.offload_keys[: computed_tokens // config.tokens_per_chunk]
            if keys:
                self._manager.touch(keys, state.req_context)

    @override
    def update_state_after_alloc(
        self, request: Request, blocks: KVCacheBlocks, num_external_tokens: int
    ) -> None:
        """Plan the load for which vLLM has just allocated device blocks."""
        if num_external_tokens and self._admitted:
            self._sync_loads.plan(request, blocks, num_external_tokens)
        else:
            super().update_state_after_alloc(request, blocks, num_external_tokens)

    @override
    def build_connector_meta(self, scheduler_output: SchedulerOutput) -> KVConnectorMetadata:
        """Send the step's loads and stores to the workers."""
        self._upstream.hold_manager_for_step()
        self._grow()
        self._sync_loads.renew_budget()
        number = 0
        if (disk := self._manager.disk) is not None and self._prefill is not None:
            disk.on_schedule_end()
            if not scheduler_output.total_num_scheduled_tokens:
                disk.wait()
            number = self._prefill.begin(scheduler_output)
        busy = with_transfers(scheduler_output, self._upstream, self._grain_tokens)
        orders = NO_TRANSFERS if busy is None else super().build_connector_meta(busy)
        self._upstream.let_go_of_manager()
        if not number or self._prefill is None:
            return orders
        if sync_jobs(orders.load_jobs):
            self._prefill.forget(number)  # it waits for loads, too
            return orders
        return numbered(orders, number)

    @override
    def update_connector_output(self, connector_output: KVConnectorOutput) -> None:
        """Make misses of failed transfers before they are completed."""
        meta = connector_output.kv_connector_worker_meta
        if self._prefill is not None:
            self._prefill.ended(getattr(meta, "steps", frozenset()))
        if meta is None:
            return
        if isinstance(meta, KVTierWorkerMetadata):
            with self._upstream.manager_held():
                self._take_failures(meta)
        super().update_connector_output(connector_output)

    def _take_failures(self, meta: KVTierWorkerMetadata) -> None:
        if self._manager.disk is not None:
            self._manager.disk.poll()  # a load may have ended that was ahead of what is known here
        for job_id in meta.failed_jobs:
            self._forget(job_id)
        self._sync_loads.complete(meta.completed_jobs)
        self._fence.reported(meta.completed_jobs)

    @override
    def reset_cache(self) -> bool | None:
        """Forget everything; what workers still copy keeps its memory until they have reported it."""
        due = self._upstream.reports_due
        done: bool | None = super().reset_cache()
        if not self._upstream.tells_when_flushed:
            self._fence.put_up(due)
        return done

    @property
    def _manager(self) -> KVTierManager:
        manager = self.scheduler.manager
        if not isinstance(manager, KVTierManager):
            raise TypeError(f"the manager is a {type(manager).__name__}, not kvtier's")
        return manager

    def _forget(self, job_id: int) -> None:
        """Invalidate a failed job's chunks, and have its request offer them again once computed."""
        sync_load = self._sync_loads.find(job_id)
        job = sync_load.status if sync_load else self._upstream.job(job_id)
        if job is None:
            return  # a job from before a cache reset
        if sync_load:
            # Until they are computed again, nobody else may find these blocks in the device's cache.
            self._kv_cache_manager.evict_blocks(sync_load.block_ids)
        self._manager.invalidate(job.keys)
        request = self._upstream.request(job.req_id)
        if request is not None:
            if sync_load:
                _count_as_computed(request.req)
            for group in request.group_states:
                group.next_stored_chunk_idx = 0


def _count_as_computed(request: Request) -> None:
    """Have vLLM's figures not tell of a load that it takes back: it counted that when it planned the step."""
    stats = getattr(request, "prefill_stats", None)  # an engine's figures are no reason for it to die
    if stats is not None:
        stats.set(stats.num_prompt_tokens, stats.num_local_cached_tokens, 0)
