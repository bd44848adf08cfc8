"""vLLM's own tiering on a CPU: its own worker is for GPUs only, so the copies are this project's.

vLLM's processes import it by name.
"""

from vllm.config import get_current_vllm_config_or_none
from vllm.v1.kv_offload.base import (
    CanonicalKVCaches,
    GPULoadStoreSpec,
    LoadStoreSpec,
    OffloadingManager,
    OffloadingWorker,
)
from vllm.v1.kv_offload.cpu.common import CPULoadStoreSpec
from vllm.v1.kv_offload.cpu.shared_offload_region import SharedOffloadRegion
from vllm.v1.kv_offload.tiering.spec import TieringOffloadingSpec

from kvtier_connector.vllm.copies.copier import MemcpyCopier
from kvtier_connector.vllm.offloading.steps import SlotSpec
from kvtier_connector.vllm.offloading.worker import KVTierWorker, canonical_layout


class Worker(KVTierWorker):
    """Takes vLLM's names for slots."""

    def _submit(self, job_id: int, blocks: GPULoadStoreSpec, spec: LoadStoreSpec, *, to_device: bool) -> bool:
        assert isinstance(spec, CPULoadStoreSpec)
        return super()._submit(job_id, blocks, SlotSpec(spec.chunk_ids), to_device=to_device)


class TieringOnCPU(TieringOffloadingSpec):  # type: ignore[misc] # vLLM has no types
    """One rank."""

    def get_manager(self) -> OffloadingManager:
        assert get_current_vllm_config_or_none() is None, "a secondary tier could know more of the engine"
        return super().get_manager()

    def get_worker(self, kv_caches: CanonicalKVCaches) -> OffloadingWorker:
        region = SharedOffloadRegion(
            engine_id=self._engine_id,
            num_chunks=self.num_chunks,
            rank=0,
            kv_bytes_per_chunk=self.kv_bytes_per_chunk,
            cpu_page_size=self.cpu_page_size_per_worker,
        )
        layout = canonical_layout(
            kv_caches,
            blocks_per_chunk=self.blocks_per_chunk,
            block_bytes=self.config.worker_kv_bytes_per_block,
            slot_bytes=self.kv_bytes_per_chunk,
            region_address=region.base_tensor.data_ptr(),
        )
        return Worker(layout, region, MemcpyCopier())
