"""The connector that vLLM loads: vLLM's own OffloadingConnector, which a failed load does not kill.

vLLM's scheduler keeps the hard parts: hybrid models, tensor parallelism, partial chunks, fences against
reusing device blocks whose store is in flight. What is added here: settings are parsed strictly, a failed
transfer makes its chunks a miss and the request is computed instead, a step does the loads itself that it
computes with, and steps without work wait for copies.
"""

from functools import cached_property, partial
from math import gcd
from typing import TYPE_CHECKING, Any, Final

import torch
from typing_extensions import override
from vllm.config import VllmConfig
from vllm.distributed.kv_transfer.kv_connector.v1 import KVConnectorRole
from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorHandshakeMetadata,
    KVConnectorMetadata,
    KVConnectorTransferResults,
)
from vllm.forward_context import ForwardContext
from vllm.platforms import current_platform
from vllm.v1.core.kv_cache_manager import KVCacheBlocks
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.kv_cache_interface import KVCacheConfig
from vllm.v1.outputs import KVConnectorOutput
from vllm.v1.request import Request

from kvtier_connector.config import parse_extra_config
from kvtier_connector.errors import SettingError
from kvtier_connector.vllm.behind.tiering import NeverWriteBehind
from kvtier_connector.vllm.control.start import open_control
from kvtier_connector.vllm.copies.layerwise_gpu_loads import layer_places
from kvtier_connector.vllm.offloading.manager import KVTierManager
from kvtier_connector.vllm.offloading.running_step import RunningStep, StepOnCpu, StepOnGpu
from kvtier_connector.vllm.offloading.start import (
    Handshake,
    choose_blocks_per_chunk,
    warn_of_states,
    warn_of_weak_hash,
)
from kvtier_connector.vllm.offloading.steps import (
    NO_TRANSFERS,
    KVTierWorkerMetadata,
    PrefillClock,
    StepMetadata,
    WorkerOffer,
    or_none,
    with_step,
    with_transfers,
)
from kvtier_connector.vllm.offloading.sync_loads import (
    Failures,
    Found,
    Lookups,
    SyncLoads,
    in_step,
    sync_jobs,
)
from kvtier_connector.vllm.offloading.worker import KVTierWorker
from kvtier_connector.vllm.upstream.engine import (
    OffloadingConnector,
    OffloadingConnectorMetadata,
    chunk_key_bytes,
)
from kvtier_connector.vllm.upstream.offloading import ResetFence, UpstreamScheduler, UpstreamWorker

if TYPE_CHECKING:
    from kvtier_connector.core.control.socket_server import ControlServer

_IDLE_WAIT_S: Final = 0.05
"""Long enough that an engine which waits for a load takes no core from its copies, short enough that a new
request does not notice."""


class KVTierConnector(OffloadingConnector):  # type: ignore[misc] # vLLM has no types
    """A CPU tier behind the engine's prefix cache."""

    def __init__(
        self, vllm_config: VllmConfig, role: KVConnectorRole, kv_cache_config: KVCacheConfig
    ) -> None:
        transfer = vllm_config.kv_transfer_config
        extra = transfer.kv_connector_extra_config
        self._settings = parse_extra_config(extra)
        if self._settings.attached and "blocks_per_chunk" not in extra:
            extra["blocks_per_chunk"] = choose_blocks_per_chunk(kv_cache_config, vllm_config)
            self._settings = parse_extra_config(extra)
        if transfer.kv_load_failure_policy != "recompute":
            raise SettingError(
                f"kv_load_failure_policy: got {transfer.kv_load_failure_policy!r}, must be 'recompute': "
                "a failed load is a miss"
            )
        super().__init__(vllm_config, role, kv_cache_config)
        if self.connector_worker is not None:
            self._begin_worker()
        if self.connector_scheduler is not None:
            self._begin_scheduler()

    @classmethod
    @override
    def get_required_kvcache_layout(cls, vllm_config: VllmConfig) -> str | None:
        """Prefer block-major KV caches: one copy per block instead of one per block and layer."""
        return None if current_platform.is_cpu() else "BLHNC"

    # ---- in the workers ----

    def _begin_worker(self) -> None:
        self._upstream_worker = UpstreamWorker(self.connector_worker)
        self._step_count = self._upstream_worker.spec.steps
        self._is_step_idle = self._is_step_quiet = False
        self._steps = frozenset[int]()
        self._failed_jobs: set[int] = set()

    @cached_property
    def _worker(self) -> KVTierWorker:
        worker = self._upstream_worker.worker
        if not isinstance(worker, KVTierWorker):
            raise TypeError(f"the worker is a {type(worker).__name__}, not kvtier's")
        return worker

    @override
    def register_kv_caches(self, kv_caches: dict[str, torch.Tensor]) -> None:
        """Take over the engine's caches, of whose layout vLLM's own worker keeps less."""
        config = self._kv_cache_config
        spec = self._upstream_worker.spec
        spec.find_layers = partial(layer_places, kv_caches, config)
        super().register_kv_caches(kv_caches)
        on_gpu = self._worker.layerwise_gpu_loads
        self._running_step: RunningStep = (
            StepOnCpu(self._upstream_worker, self._worker, config.kv_cache_groups[0].layer_names)
            if on_gpu is None
            else StepOnGpu(self._upstream_worker, on_gpu, zeroes_blocks=config.needs_kv_cache_zeroing)
        )

    @override
    def handle_preemptions(self, kv_connector_metadata: OffloadingConnectorMetadata) -> None:
        """Finish the stores whose device blocks this step reuses, and begin the loads that it computes with.

        They run while vLLM prepares the step's input.
        """
        self._step_count.begun += 1
        has_orders = kv_connector_metadata is not NO_TRANSFERS
        self._is_step_quiet = not (has_orders or self._upstream_worker.has_stores_put_off)
        if self._is_step_quiet:
            self._running_step.begin(None)
            return
        super().handle_preemptions(kv_connector_metadata)
        self._running_step.begin(kv_connector_metadata)

    @override
    def start_load_kv(self, forward_context: ForwardContext, **kwargs: Any) -> None:
        """Begin the other loads and the last step's stores, and end the loads that the step computes with.

        Those of which a part is still being read from disk, or copied to a GPU, end when a layer needs that.
        """
        self._is_step_idle = forward_context.attn_metadata is None
        if self._is_step_quiet:
            return
        metadata = self._connector_metadata
        if isinstance(metadata, StepMetadata):
            self._steps |= {metadata.step}
        self._running_step.leave_out(metadata)
        super().start_load_kv(forward_context, **kwargs)
        self._running_step.begin_forward(metadata, forward_context)

    @override
    def wait_for_layer_load(self, layer_name: str) -> None:
        """Have a layer wait for its part of what is still being read from disk, or copied to a GPU."""
        step = self._running_step
        if step.has_layers_ask:  # vLLM calls this for every layer of every step
            step.wait_for_layer(layer_name)

    @override
    def finish_forward(self) -> None:
        """End what the model's layers wait for; one of vLLM's runners says so before a draft computes."""
        self._running_step.end_forward()

    @override
    def wait_for_save(self) -> None:
        """Plan the step's stores, of whose blocks all is known now."""
        self._running_step.end_forward()
        if not self._is_step_quiet:
            super().wait_for_save()

    @override
    def get_handshake_metadata(self) -> WorkerOffer:
        """Tell the scheduler's process of this rank's part of the tier, which grows from now on.

        vLLM asks when its worker has warmed up.
        """
        self._worker.grow()
        spec = self._upstream_worker.spec
        return WorkerOffer(spec.growth_path, spec.region_offer)

    @override
    def get_block_ids_with_load_errors(self) -> set[int]:
        """Return the device blocks that a failed load of this step has left unfilled."""
        return self._running_step.take_unfilled()

    @override
    def get_transfer_results(self, finished_req_ids: set[str]) -> KVConnectorTransferResults:
        """Report the transfers that ended, and the requests whose load failed."""
        self._step_count.ended = self._step_count.begun
        worker = self._worker
        self._running_step.end_forward()  # with speculative decoding, vLLM waits for the step's stores later
        if not worker.busy:
            return KVConnectorTransferResults()
        if self._is_step_idle:
            worker.pause(_IDLE_WAIT_S)
        request_of_load = self._upstream_worker.requests_of_loads
        sent, received = self.get_finished(finished_req_ids)
        failed = worker.take_failed()
        self._failed_jobs |= failed
        failed_requests = {request_of_load[job_id] for job_id in failed & request_of_load.keys()}
        return KVConnectorTransferResults(sent, received, failed_requests - {None})

    @override
    def build_connector_worker_meta(self) -> KVTierWorkerMetadata | None:
        """Report the completed jobs, which of them failed, and the step if that is measured."""
        meta = super().build_connector_worker_meta()
        steps, self._steps = self._steps, frozenset()
        if meta is None:
            return KVTierWorkerMetadata(steps=steps) if steps else None
        failed, self._failed_jobs = self._failed_jobs | self._running_step.take_failed_stores(), set()
        return KVTierWorkerMetadata(meta.completed_jobs, meta.transfer_stats, failed, steps)

    # ---- in the scheduler ----

    def _begin_scheduler(self) -> None:
        config, kv_cache, settings = self._vllm_config, self._kv_cache_config, self._settings
        warn_of_weak_hash(config.cache_config.prefix_caching_hash_algo)
        warn_of_states(kv_cache, settings.blocks_per_chunk)
        self._upstream = upstream = UpstreamScheduler(self.connector_scheduler)
        self._manager = manager = upstream.manager
        if not isinstance(manager, KVTierManager):
            raise TypeError(f"the manager is a {type(manager).__name__}, not kvtier's")
        manager.expect_keys(chunk_key_bytes(config.cache_config.prefix_caching_hash_algo))
        own = in_step(config, kv_cache, upstream.tokens_per_block, layered=settings.layered_loads)
        self._sync_loads = SyncLoads(upstream, own)
        self._lookups = Lookups(upstream, manager, self._sync_loads, super().get_num_new_matched_tokens)
        self._failures = Failures(upstream, manager, self._sync_loads, self._evict_blocks)
        self._fence = ResetFence(upstream, manager.on_reset_flushed)
        self._handshake = Handshake(settings, manager, config, kv_cache)
        self._chunk_gcd_tokens = gcd(*upstream.tokens_per_chunk)
        self._prefill: PrefillClock | None = None
        self._control: ControlServer | None = None

    def _evict_blocks(self, block_ids: frozenset[int]) -> None:
        self._kv_cache_manager.evict_blocks(block_ids)

    @override
    def set_xfer_handshake_metadata(self, metadata: dict[int, KVConnectorHandshakeMetadata]) -> None:
        """Follow how the workers' slices grow, and open the tiers behind them."""
        with self._upstream.hold_manager():
            self._handshake.take(metadata, in_parts=self._sync_loads.are_on)
        if self._manager.behind is not None:
            self._prefill = PrefillClock(self._manager.behind.prefill)
        if self._control is None and self._kv_cache_manager is not None:
            self._control = open_control(
                self._settings, self._vllm_config, self._upstream, self._manager, self._kv_cache_manager
            )

    @override
    def shutdown(self) -> None:
        """Let go of the tiers, and of the control socket first."""
        if self.connector_scheduler is not None and self._control is not None:
            self._control.close()
            self._control = None
        super().shutdown()

    @override
    def on_new_request(self, request: Request) -> None:
        """Read a request's hints, and take note of one whose blocks another start could not tell apart."""
        super().on_new_request(request)
        context = self._upstream.context(request.request_id)
        if context is None:
            return
        if request.kv_transfer_params is not None or request.cache_salt is not None:
            with self._upstream.hold_manager():
                self._manager.take_hints(context, request.kv_transfer_params, request.cache_salt)
        if request.lora_request is not None:
            # Its key names the adapter, not the weights in it.
            context.set_state(NeverWriteBehind())

    @override
    def get_num_new_matched_tokens(self, request: Request, num_computed_tokens: int) -> Found:
        """Tell how many more tokens the tier has, and whether the request has to wait for them."""
        return self._lookups.look_up(request, num_computed_tokens)

    @override
    def update_state_after_alloc(
        self, request: Request, blocks: KVCacheBlocks, num_external_tokens: int
    ) -> None:
        """Plan the load for which vLLM has just allocated device blocks."""
        if num_external_tokens and self._lookups.sync_request_id == request.request_id:
            self._sync_loads.plan(request, blocks, num_external_tokens)
        else:
            super().update_state_after_alloc(request, blocks, num_external_tokens)

    @override
    def build_connector_meta(self, scheduler_output: SchedulerOutput) -> KVConnectorMetadata:
        """Send the step's loads and stores to the workers."""
        self._upstream.hold_manager_for_step()
        self._handshake.grow()
        self._sync_loads.renew_budget()
        number = 0
        if (behind := self._manager.behind) is not None and self._prefill is not None:
            behind.on_schedule_end()
            if not scheduler_output.total_num_scheduled_tokens:
                behind.wait()
            number = self._prefill.begin(scheduler_output)
        busy = with_transfers(scheduler_output, self._upstream, self._chunk_gcd_tokens)
        orders = NO_TRANSFERS if busy is None else or_none(super().build_connector_meta(busy))
        self._upstream.let_go_of_manager()
        if not number or self._prefill is None:
            return orders
        if sync_jobs(orders.load_jobs):
            self._prefill.forget(number)  # it waits for loads, too
            return orders
        return with_step(orders, number)

    @override
    def update_connector_output(self, connector_output: KVConnectorOutput) -> None:
        """Make misses of failed transfers before they are completed."""
        report = connector_output.kv_connector_worker_meta
        ours = report is not None and isinstance(report, KVTierWorkerMetadata)
        if self._prefill is not None:
            self._prefill.end(report.steps if ours else frozenset())
        if report is None:
            return
        if ours:
            with self._upstream.hold_manager():
                self._failures.take(report)
                self._sync_loads.complete(report.completed_jobs)
                self._fence.take_reports(report.completed_jobs)
        super().update_connector_output(connector_output)

    @override
    def has_pending_push_work(self) -> bool:
        """Tell whether the engine has to go on stepping for what workers have yet to report."""
        return self._sync_loads.are_running or bool(super().has_pending_push_work())

    @override
    def reset_cache(self) -> bool | None:
        """Forget everything; what workers still copy keeps its memory until they have reported it."""
        self._sync_loads.give_back()
        with self._fence.around_reset():
            done: bool | None = super().reset_cache()
        return done
