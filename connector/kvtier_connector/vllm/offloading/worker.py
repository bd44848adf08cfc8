"""The worker's side: upstream's transfers become copies, and a step waits for the loads that it needs."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from typing_extensions import override
from vllm.forward_context import ForwardContext
from vllm.v1.kv_offload.base import (
    CanonicalKVCaches,
    GPULoadStoreSpec,
    LoadStoreSpec,
    OffloadingWorker,
    TransferResult,
)

from kvtier_connector.core.copies.copyplan import Layout, Page, plan_copies
from kvtier_connector.core.region.growth import Growth
from kvtier_connector.core.region.region import Slice
from kvtier_connector.errors import ConnectorError
from kvtier_connector.vllm.copies.copier import Copier, CopyResult
from kvtier_connector.vllm.copies.layerwise_disk_loads import LayerwiseDiskLoads
from kvtier_connector.vllm.copies.layerwise_gpu_loads import LayerwiseGpuLoads
from kvtier_connector.vllm.offloading.steps import SlotSpec
from kvtier_connector.vllm.offloading.sync_loads import asks_for_layers, jobs_being_read, sync_jobs
from kvtier_connector.vllm.upstream.compat import log
from kvtier_connector.vllm.upstream.engine import OffloadingConnectorMetadata, TransferJob
from kvtier_connector.vllm.upstream.offloading import UpstreamWorker


def canonical_layout(
    kv_caches: CanonicalKVCaches,
    *,
    blocks_per_chunk: int,
    block_bytes: int,
    slot_bytes: int,
    region_address: int,
) -> Layout:
    """Return where vLLM's KV caches lie, as the copy plan needs it.

    Raises ValueError: the caches need more bytes for a block than `block_bytes`.
    """
    offsets, offset = [], 0
    for cache in kv_caches.tensors:
        offsets.append(offset)
        offset += cache.page_size_bytes
    if offset > block_bytes:
        raise ValueError(f"a block's pages take {offset} bytes, but its slot only {block_bytes}")
    groups = tuple(
        tuple(
            Page(
                kv_caches.tensors[ref.tensor_idx].tensor.data_ptr(),
                kv_caches.tensors[ref.tensor_idx].tensor.stride(0)
                * kv_caches.tensors[ref.tensor_idx].tensor.element_size(),
                offsets[ref.tensor_idx],
                ref.page_size_bytes,
            )
            for ref in references
        )
        for references in kv_caches.group_data_refs
    )
    padding_bytes = slot_bytes - blocks_per_chunk * block_bytes
    return Layout(groups, blocks_per_chunk, block_bytes, region_address, padding_bytes)


class KVTierWorker(OffloadingWorker):  # type: ignore[misc] # vLLM has no types
    """Moves chunks between one rank's KV cache and its slice of the region.

    A transfer that fails is reported to upstream as done, because upstream asserts success, and is remembered
    in `take_failed`, from which the connector makes a miss of it.
    """

    def __init__(  # noqa: PLR0913 - its parts
        self,
        layout: Layout,
        memory: Slice,
        copier: Copier,
        *,
        layerwise_disk_loads: LayerwiseDiskLoads | None = None,
        growth: Growth | None = None,
        layerwise_gpu_loads: LayerwiseGpuLoads | None = None,
    ) -> None:
        self._layout = layout
        self.layerwise_disk_loads = layerwise_disk_loads
        self._memory: Slice | None = memory
        self._copier = copier
        self._growth = growth
        self._layerwise_gpu_loads = layerwise_gpu_loads
        self._bytes: dict[int, int] = {}
        self._ended: list[CopyResult] = []
        self._failed: set[int] = set()

    def grow(self) -> None:
        """Have the slice grow from now on, when the engine has started.

        Not before: a driver does not register memory while a CUDA graph is being captured.
        """
        if self._growth is not None:
            self._growth.start()

    @property
    def busy(self) -> bool:
        """Whether a transfer is under way or its end not yet reported."""
        return bool(self._bytes)

    @override
    def submit_store(self, job_id: int, src_spec: GPULoadStoreSpec, dst_spec: LoadStoreSpec) -> bool:
        """Begin to copy device blocks into slots."""
        return self._submit(job_id, src_spec, dst_spec, to_device=False)

    @override
    def submit_load(
        self, job_id: int, src_spec: LoadStoreSpec, dst_spec: GPULoadStoreSpec, expedited: bool = False
    ) -> bool:
        """Begin to copy slots into device blocks. Only a newer vLLM passes `expedited`, if asked to."""
        return self._submit(job_id, dst_spec, src_spec, to_device=True)

    @override
    def get_finished(self) -> list[TransferResult]:
        """Return the transfers that ended since the last call."""
        self._collect()
        ended, self._ended = self._ended, []
        results = []
        for outcome in ended:
            size = self._bytes.pop(outcome.job_id)
            if outcome.error is None:
                results.append(TransferResult(outcome.job_id, True, size, outcome.seconds))  # noqa: FBT003
                continue
            log.warning("kvtier: transfer %d failed and is dropped: %s", outcome.job_id, outcome.error)
            self._failed.add(outcome.job_id)
            results.append(TransferResult(outcome.job_id, True))  # noqa: FBT003
        return results

    def take_failed(self) -> set[int]:
        """Return the jobs reported by `get_finished` that failed, since the last call."""
        failed, self._failed = self._failed, set()
        return failed

    def pause(self, timeout_s: float) -> None:
        """Give way to the copies when the engine has nothing else to do."""
        self._copier.pause(timeout_s)

    @override
    def wait(self, job_ids: set[int]) -> None:
        """Return when these transfers have ended: their device blocks are about to be reused."""
        self._copier.wait(job_ids)
        if self.layerwise_disk_loads is not None:
            self.layerwise_disk_loads.finish(job_ids)

    def in_parts(self, jobs: Mapping[int, TransferJob]) -> list[int]:
        """Return those of a step's loads that its layers have to wait for, one by one."""
        return (
            jobs_being_read(jobs)
            if self._layerwise_gpu_loads is None
            else self._layerwise_gpu_loads.running(jobs)
        )

    def wait_for_layer(self, job_ids: Collection[int], layer: int) -> bool:
        """Have a layer, counted from 0, wait for its part of loads; tells whether they end with that."""
        loads = self._layerwise_gpu_loads or self.layerwise_disk_loads
        if loads is None:
            return False
        for job_id in job_ids:
            loads.wait_for_layer(job_id, layer)
        return self.layerwise_disk_loads is not None and self.layerwise_disk_loads.is_last(layer)

    def finish(self, job_ids: Collection[int], *, has_computed: bool) -> set[int]:
        """Return when these transfers have ended, and which of them failed; `get_finished` still has them."""
        self.wait(set(job_ids))
        self._collect()
        if self._layerwise_gpu_loads is not None:
            unasked = self._layerwise_gpu_loads.end(job_ids)
            if has_computed and unasked:
                error = ConnectorError("a step has computed without asking for all layers of a load")
                self._ended = [
                    replace(outcome, error=outcome.error or error) if outcome.job_id in unasked else outcome
                    for outcome in self._ended
                ]
        return {outcome.job_id for outcome in self._ended if outcome.error and outcome.job_id in job_ids}

    @override
    def shutdown(self) -> None:
        """End the growth and the copies, then let go of the memory."""
        if self._growth is not None:
            self._growth.stop()
        self._copier.close()
        self._memory = None

    def _collect(self) -> None:
        self._ended += self._copier.take_finished()
        if self.layerwise_disk_loads is not None:
            self._ended += self.layerwise_disk_loads.take_finished()

    def _submit(self, job_id: int, blocks: GPULoadStoreSpec, spec: LoadStoreSpec, *, to_device: bool) -> bool:
        if not isinstance(spec, SlotSpec):
            raise TypeError(f"a transfer to {type(spec).__name__} is not ours")
        try:
            if spec.tickets is not None and self.layerwise_disk_loads is not None:
                self._bytes[job_id] = self.layerwise_disk_loads.start(
                    job_id, blocks, spec.slots, spec.tickets
                )
                return True
            if spec.is_sync and self._layerwise_gpu_loads is not None:
                self._bytes[job_id] = self._layerwise_gpu_loads.start(job_id, blocks, spec.slots)
                return True
            plan = plan_copies(
                self._layout, blocks.block_ids, spec.slots, blocks.group_sizes, blocks.block_indices
            )
            self._bytes[job_id] = plan.total_bytes
            self._copier.start(job_id, plan, to_device=to_device)
        except Exception as error:  # noqa: BLE001 - whatever it is, the engine must live and the block be a miss
            self._bytes.setdefault(job_id, 0)
            self._ended.append(CopyResult(job_id, 0.0, error))
        return True


class RunningStep:
    """The loads of the step that a worker runs: begun, waited for, and taken back where they fail."""

    def __init__(self, upstream: UpstreamWorker) -> None:
        self._upstream = upstream
        self._loads: dict[int, TransferJob] = {}
        self._layerwise = list[int]()
        self._unfilled_block_ids: set[int] = set()
        self._failed_stores: set[int] = set()

    @property
    def is_layerwise(self) -> bool:
        """Whether layers have to wait for their part of a load."""
        return bool(self._layerwise)

    @property
    def request_ids(self) -> set[str]:
        """The requests that compute in this very step on what it loads."""
        return {job.req_id for job in self._loads.values()}

    def begin(self, orders: OffloadingConnectorMetadata | None) -> None:
        """Begin the loads that a step computes with, of its orders; None for a step without transfers."""
        self._loads = sync_jobs(orders.load_jobs) if orders is not None else {}
        if self._loads:
            self._upstream.begin(self._loads)

    def leave_out(self, orders: OffloadingConnectorMetadata) -> None:
        """Take the loads that have begun out of the step's orders."""
        for job_id in self._loads:
            del orders.load_jobs[job_id]

    def compute(
        self, worker: KVTierWorker, orders: OffloadingConnectorMetadata, context: ForwardContext
    ) -> None:
        """Return when the step can compute; its layers may have to wait for their parts one by one."""
        if asks_for_layers(context):
            self._layerwise = worker.in_parts(self._loads)
        if not self._layerwise:
            self.end(worker, orders, has_computed=False)

    def wait_for_layer(self, worker: KVTierWorker, orders: OffloadingConnectorMetadata, layer: int) -> None:
        """Have a layer, counted from 0, wait for its part of the loads."""
        if worker.wait_for_layer(self._layerwise, layer):
            self.end(worker, orders, has_computed=True)

    def end(self, worker: KVTierWorker, orders: OffloadingConnectorMetadata, *, has_computed: bool) -> None:
        """Return when the loads have ended. What has computed on a failed one is neither kept nor stored."""
        self._layerwise = []
        if self._loads:
            for job_id in worker.finish(self._loads, has_computed=has_computed):
                self._take_back(orders, self._loads[job_id])

    def take_unfilled(self) -> set[int]:
        """Return the device blocks that failed loads have left unfilled, since the last call."""
        unfilled, self._unfilled_block_ids = self._unfilled_block_ids, set()
        return unfilled

    def take_failed_stores(self) -> set[int]:
        """Return the stores that were reported as done and are not, since the last call."""
        failed, self._failed_stores = self._failed_stores, set()
        return failed

    def _take_back(self, orders: OffloadingConnectorMetadata, load: TransferJob) -> None:
        """Have vLLM compute again what this step computes on a failed load, and keep none of it."""
        self._unfilled_block_ids.update(int(block) for block in load.dst_spec.block_ids)
        for job_id, store in list(orders.store_jobs.items()):
            if store.req_id == load.req_id:
                del orders.store_jobs[job_id]
                self._failed_stores.add(job_id)
                self._upstream.mark_completed(job_id)
