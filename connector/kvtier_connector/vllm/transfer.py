"""What scheduler and workers tell each other about transfers."""

from dataclasses import dataclass, field

from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorHandshakeMetadata,
    KVConnectorWorkerMetadata,
)
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.common import OffloadingWorkerMetadata
from vllm.v1.kv_offload.base import LoadStoreSpec

from kvtier_connector.core.keytable import Slots
from kvtier_connector.core.region import RegionHandle


@dataclass(frozen=True, slots=True)
class SlotSpec(LoadStoreSpec):  # type: ignore[misc] # vLLM has no types
    """The region's side of a transfer.

    Args:
        slots: one per chunk, in the order of the keys.
        within_step: a load that the step needs before it computes.
    """

    slots: Slots
    within_step: bool = False


@dataclass
class KVTierWorkerMetadata(OffloadingWorkerMetadata):  # type: ignore[misc] # vLLM has no types
    """Upstream's report of completed jobs, and which of them failed on this worker or on any other.

    Upstream has no channel for a failure: its worker asserts success.
    """

    failed_jobs: set[int] = field(default_factory=set)

    def aggregate(self, other: KVConnectorWorkerMetadata) -> KVConnectorWorkerMetadata:
        """Merge another worker's report of the same step."""
        merged = super().aggregate(other)
        failed = self.failed_jobs | getattr(other, "failed_jobs", set())
        return KVTierWorkerMetadata(merged.completed_jobs, merged.transfer_stats, failed)


@dataclass(frozen=True, slots=True)
class RegionOffer(KVConnectorHandshakeMetadata):  # type: ignore[misc] # vLLM has no types
    """The first worker's offer of the region to the scheduler's process."""

    region: RegionHandle
