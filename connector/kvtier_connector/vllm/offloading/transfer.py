"""What scheduler and workers tell each other about transfers."""

from dataclasses import dataclass, field, fields

from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorHandshakeMetadata,
    KVConnectorWorkerMetadata,
)
from vllm.v1.kv_offload.base import LoadStoreSpec

from kvtier_connector.core.copies.arrivals import Tickets
from kvtier_connector.core.index.keytable import Slots
from kvtier_connector.core.region.region import RegionOffer
from kvtier_connector.vllm.upstream.classes import OffloadingConnectorMetadata, OffloadingWorkerMetadata


@dataclass(frozen=True, slots=True)
class SlotSpec(LoadStoreSpec):  # type: ignore[misc] # vLLM has no types
    """The region's side of a transfer.

    Attributes:
        slots: One per chunk, in the order of the keys.
        tickets: Tickets of the reads from disk that are not known to have ended, 0 for other slots; None if
            there are none.
        is_sync: A load that the step needs before it computes.
    """

    slots: Slots
    tickets: Tickets | None = None
    is_sync: bool = False


@dataclass
class StepMetadata(OffloadingConnectorMetadata):  # type: ignore[misc] # vLLM has no types
    """What the workers are told of a step, and its number, which they send back with what they have done."""

    step: int = 0


def with_step(orders: OffloadingConnectorMetadata, step: int) -> StepMetadata:
    """Return a step's orders with its number."""
    return StepMetadata(**{each.name: getattr(orders, each.name) for each in fields(orders)}, step=step)


@dataclass
class KVTierWorkerMetadata(OffloadingWorkerMetadata):  # type: ignore[misc] # vLLM has no types
    """Upstream's report of completed jobs, which of them failed on any worker, and the steps that were done.

    Upstream has no channel for a failure: its worker asserts success.
    """

    failed_jobs: set[int] = field(default_factory=set)
    steps: frozenset[int] = frozenset()

    def aggregate(self, other: KVConnectorWorkerMetadata) -> KVConnectorWorkerMetadata:
        """Merge another worker's report of the same step."""
        merged = super().aggregate(other)
        failed = self.failed_jobs | getattr(other, "failed_jobs", set())
        steps = self.steps | getattr(other, "steps", frozenset())
        return KVTierWorkerMetadata(merged.completed_jobs, merged.transfer_stats, failed, steps)


@dataclass(frozen=True, slots=True)
class WorkerOffer(KVConnectorHandshakeMetadata):  # type: ignore[misc] # vLLM has no types
    """What a worker tells the scheduler's process at start.

    Attributes:
        growth: Path of the words in which it tells how far its slice has grown.
        region: The region, of the first worker where there is a disk tier.
    """

    growth: str
    region: RegionOffer | None = None
