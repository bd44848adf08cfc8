"""The loads of the step that a worker runs: begun before it, and waited for by it.

On a CPU a step whose load fails is taken back. On a GPU there is nothing to take back: a copy that the driver
refuses is known before the step and made in another way, and one that fails on the device ends its context.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from typing_extensions import override
from vllm.forward_context import ForwardContext

from kvtier_connector.vllm.copies.layerwise_gpu_loads import LayerwiseGpuLoads, asks_for_layers
from kvtier_connector.vllm.offloading.sync_loads import jobs_being_read, sync_jobs
from kvtier_connector.vllm.offloading.worker import KVTierWorker
from kvtier_connector.vllm.upstream.engine import OffloadingConnectorMetadata, TransferJob
from kvtier_connector.vllm.upstream.offloading import UpstreamWorker

if TYPE_CHECKING:
    from kvtier_connector.vllm.copies.layerwise_disk_loads import LayerwiseDiskLoads


class RunningStep(Protocol):
    """One step after another, each from `begin` to `end_forward`."""

    has_layers_ask: bool
    """Whether layers have anything to wait for."""

    def begin(self, orders: OffloadingConnectorMetadata | None) -> None:
        """Begin the loads that a step computes with, of its orders; None for a step without transfers."""

    def leave_out(self, orders: OffloadingConnectorMetadata) -> None:
        """Take the loads that have begun out of the step's orders."""

    def begin_forward(self, orders: OffloadingConnectorMetadata, context: ForwardContext) -> None:
        """Return when the step can compute; its layers may have to wait for their parts one by one."""

    def wait_for_layer(self, layer_name: str) -> None:
        """Have a layer wait for its part of the loads."""

    def end_forward(self) -> None:
        """End the step's loads; a second time it does nothing."""

    def take_unfilled(self) -> set[int]:
        """Return the device blocks that failed loads have left unfilled, since the last call."""

    def take_failed_stores(self) -> set[int]:
        """Return the stores that were reported as done and are not, since the last call."""


class StepOnGpu(RunningStep):
    """A step on a GPU: what waits is the device."""

    def __init__(self, upstream: UpstreamWorker, loads: LayerwiseGpuLoads, *, zeroes_blocks: bool) -> None:
        self._upstream = upstream
        self._loads = loads
        self._zeroes_blocks = zeroes_blocks
        self._jobs: dict[int, TransferJob] = {}
        self.has_layers_ask = False

    @override
    def begin(self, orders: OffloadingConnectorMetadata | None) -> None:
        self._jobs = sync_jobs(orders.load_jobs) if orders is not None else {}
        self.has_layers_ask = bool(self._jobs)
        if self._jobs and not self._zeroes_blocks:
            self._upstream.begin(self._jobs)

    @override
    def leave_out(self, orders: OffloadingConnectorMetadata) -> None:
        for job_id in self._jobs:
            del orders.load_jobs[job_id]
        if self._jobs and self._zeroes_blocks:  # vLLM has zeroed new blocks since `begin`
            self._upstream.begin(self._jobs)

    @override
    def begin_forward(self, orders: OffloadingConnectorMetadata, context: ForwardContext) -> None:
        if self._jobs:
            self._loads.begin_forward(context)

    @override
    def wait_for_layer(self, layer_name: str) -> None:
        self._loads.ask(layer_name)

    @override
    def end_forward(self) -> None:
        if self.has_layers_ask:
            self._loads.end_forward()
            self.has_layers_ask = False

    @override
    def take_unfilled(self) -> set[int]:
        return set()

    @override
    def take_failed_stores(self) -> set[int]:
        return set()


class StepOnCpu(RunningStep):
    """A step on a CPU, or on a GPU with nothing to load within steps: what waits is the engine."""

    def __init__(self, upstream: UpstreamWorker, worker: KVTierWorker, layer_names: Sequence[str]) -> None:
        self._upstream = upstream
        self._worker = worker
        self._layers = {name: number for number, name in enumerate(layer_names)}
        self._loads: dict[int, TransferJob] = {}
        self._orders: OffloadingConnectorMetadata | None = None
        self.has_layers_ask = False
        self._layerwise: tuple[LayerwiseDiskLoads, list[int]] | None = None
        """What layers have to wait for one by one."""
        self._unfilled_block_ids: set[int] = set()
        self._failed_stores: set[int] = set()

    @override
    def begin(self, orders: OffloadingConnectorMetadata | None) -> None:
        self._loads = sync_jobs(orders.load_jobs) if orders is not None else {}
        if self._loads:
            self._upstream.begin(self._loads)

    @override
    def leave_out(self, orders: OffloadingConnectorMetadata) -> None:
        for job_id in self._loads:
            del orders.load_jobs[job_id]

    @override
    def begin_forward(self, orders: OffloadingConnectorMetadata, context: ForwardContext) -> None:
        self._orders = orders
        being_read = jobs_being_read(self._loads) if asks_for_layers(context) else []
        if being_read and self._worker.layerwise_disk_loads is not None:
            self._layerwise = self._worker.layerwise_disk_loads, being_read
            self.has_layers_ask = True
        else:
            self._end()

    @override
    def wait_for_layer(self, layer_name: str) -> None:
        if self._layerwise is None:
            return
        loads, job_ids = self._layerwise
        layer = self._layers[layer_name]
        for job_id in job_ids:
            loads.wait_for_layer(job_id, layer)
        if loads.is_last(layer):
            self._end()

    @override
    def end_forward(self) -> None:
        if self._layerwise is not None:
            self._end()

    @override
    def take_unfilled(self) -> set[int]:
        unfilled, self._unfilled_block_ids = self._unfilled_block_ids, set()
        return unfilled

    @override
    def take_failed_stores(self) -> set[int]:
        failed, self._failed_stores = self._failed_stores, set()
        return failed

    def _end(self) -> None:
        """Return when the loads have ended. What has computed on a failed one is neither kept nor stored."""
        self._layerwise, self.has_layers_ask = None, False
        if self._loads and self._orders is not None:
            for job_id in self._worker.finish(self._loads):
                self._take_back(self._orders, self._loads[job_id])

    def _take_back(self, orders: OffloadingConnectorMetadata, load: TransferJob) -> None:
        """Have vLLM compute again what this step computes on a failed load, and keep none of it."""
        self._unfilled_block_ids.update(int(block) for block in load.dst_spec.block_ids)
        for job_id, store in list(orders.store_jobs.items()):
            if store.req_id == load.req_id:
                del orders.store_jobs[job_id]
                self._failed_stores.add(job_id)
                self._upstream.mark_completed(job_id)
