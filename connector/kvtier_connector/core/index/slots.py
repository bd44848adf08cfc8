"""How many chunks a tier of a given capacity holds, and how they are cut over the ranks."""

from collections.abc import Mapping
from dataclasses import dataclass

from kvtier_connector.config import ConnectorConfig, Policy, align_to_disk
from kvtier_connector.core.machine.memory import format_bytes
from kvtier_connector.core.region.pages import SMALL_PAGE_BYTES
from kvtier_connector.core.region.region import RegionRequest
from kvtier_connector.errors import SettingError


@dataclass(frozen=True, slots=True)
class TierGeometry:
    """The tier's slots."""

    slots: int  # number of chunks the tier holds
    slot_bytes: int  # one rank's bytes of a chunk, rounded up to what a disk can read and write
    slices: int  # number of slices that the region is cut into
    ranks: int  # number of worker processes that use it

    @property
    def chunk_bytes(self) -> int:
        """Bytes of a chunk in all slices together."""
        return self.slot_bytes * self.slices

    @staticmethod
    def tokens(slots: int, tokens_per_chunk: Mapping[int, int]) -> int:
        """Return how many tokens so many slots hold: each takes a chunk of every KV cache group."""
        return slots * max(tokens_per_chunk.values()) // len(tokens_per_chunk)

    def request(self, config: ConnectorConfig) -> RegionRequest:
        """Return the region that holds these slots."""
        shared = self.ranks > 1 or config.has_tiers_behind  # with the process that moves blocks there
        return RegionRequest(
            self.slices, self.slots * self.slot_bytes, shared, config.hugepages, config.hugepage_bytes
        )


def tier_geometry(
    config: ConnectorConfig, *, block_bytes: int, blocks_per_chunk: int, ranks: int, replicated: bool
) -> TierGeometry:
    """Cut the capacity into slices and slots; the whole region, rounded up to pages, stays within it.

    Replicated ranks hold the same bytes (MLA), so one copy is kept for all. Raises SettingError: the capacity
    does not hold one chunk.
    """
    slices = 1 if replicated else ranks
    slot_bytes = block_bytes * blocks_per_chunk
    if config.disk_path:
        slot_bytes = align_to_disk(slot_bytes)
    page_bytes = SMALL_PAGE_BYTES if config.hugepages is Policy.NEVER else config.hugepage_bytes
    slots = config.cpu_capacity_bytes // slices // page_bytes * page_bytes // slot_bytes
    slots = max(slots, int(config.attached))  # a tier of one chunk is none, and nothing to end an engine for
    if slots < 1:
        raise SettingError(
            f"kv_connector_extra_config.cpu_capacity_bytes: {format_bytes(config.cpu_capacity_bytes)} in "
            f"{slices} slice(s) do not hold one chunk of {format_bytes(slot_bytes)}; give more"
        )
    return TierGeometry(slots, slot_bytes, slices, ranks)
