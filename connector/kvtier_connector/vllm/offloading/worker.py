"""The worker's side: upstream's transfers become copies."""

from collections.abc import Collection

from typing_extensions import override
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
from kvtier_connector.errors import DeviceError
from kvtier_connector.vllm.copies.copier import Copier, CopyResult
from kvtier_connector.vllm.copies.layerwise_disk_loads import LayerwiseDiskLoads
from kvtier_connector.vllm.copies.layerwise_gpu_loads import LayerwiseGpuLoads
from kvtier_connector.vllm.offloading.steps import SlotSpec
from kvtier_connector.vllm.upstream.compat import log


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
        self.layerwise_gpu_loads = layerwise_gpu_loads
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

    def finish(self, job_ids: Collection[int]) -> set[int]:
        """Return when these transfers have ended, and which of them failed; `get_finished` still has them."""
        self.wait(set(job_ids))
        self._collect()
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
            if spec.is_sync and self.layerwise_gpu_loads is not None:
                self._bytes[job_id] = self.layerwise_gpu_loads.start(job_id, blocks, spec.slots)
                return True
            plan = plan_copies(
                self._layout, blocks.block_ids, spec.slots, blocks.group_sizes, blocks.block_indices
            )
            self._bytes[job_id] = plan.total_bytes
            self._copier.start(job_id, plan, to_device=to_device)
        except Exception as error:
            if spec.is_sync and self.layerwise_gpu_loads is not None:
                raise _as_device_error(error) from error  # its step cannot be taken back
            self._bytes.setdefault(job_id, 0)
            self._ended.append(CopyResult(job_id, 0.0, error))
        return True


def _as_device_error(error: Exception) -> DeviceError:
    """Say of an error that a step waits for what it has prevented."""
    if isinstance(error, DeviceError):
        return error
    return DeviceError(
        f"a step waits for a load that cannot be begun, so the engine ends: {type(error).__name__}: {error}"
    )
