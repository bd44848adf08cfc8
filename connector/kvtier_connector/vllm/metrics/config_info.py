"""What stays as it is of the tiers: labels of a newer vLLM's `vllm:kv_offload_config_info`."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from kvtier_connector.config import ConnectorConfig, Policy
from kvtier_connector.core.index.slots import TierGeometry


@dataclass(frozen=True, slots=True)
class TierFacts:
    """The labels, by their names.

    The first four have the names and meanings of those of vLLM's own CPU tier (v1/kv_offload/cpu/common.py),
    for dashboards that know that. They are what is aimed at: the tier grows beside the engine.

    Attributes:
        cpu_num_chunks: Chunks that the tier will hold.
        cpu_blocks_per_chunk: Engine blocks in a chunk.
        cpu_kv_cache_size_bytes: All ranks together.
        cpu_kv_cache_size_tokens: Tokens that it will hold.
        cpu_memlock: What is asked for.
        cpu_hugepages: What is asked for.
        disk_size_bytes: What the disk tier's files take; 0 without one.
    """

    cpu_num_chunks: int
    cpu_blocks_per_chunk: int
    cpu_kv_cache_size_bytes: int
    cpu_kv_cache_size_tokens: int
    cpu_memlock: Policy
    cpu_hugepages: Policy
    disk_size_bytes: int

    @classmethod
    def of(
        cls, settings: ConnectorConfig, geometry: TierGeometry, tokens_per_chunk: Mapping[int, int]
    ) -> "TierFacts":
        """Gather them.

        Args:
            settings: The connector's.
            geometry: The tier's slots.
            tokens_per_chunk: For each KV cache group, the tokens of a chunk.
        """
        return cls(
            cpu_num_chunks=geometry.slots,
            cpu_blocks_per_chunk=settings.blocks_per_chunk,
            cpu_kv_cache_size_bytes=geometry.slots * geometry.chunk_bytes,
            cpu_kv_cache_size_tokens=geometry.tokens(geometry.slots, tokens_per_chunk),
            cpu_memlock=settings.memlock,
            cpu_hugepages=settings.hugepages,
            disk_size_bytes=settings.disk_capacity_bytes,
        )

    def labels(self) -> dict[str, str | int]:
        """Return them as vLLM takes them."""
        return {
            name: str(value) if isinstance(value, Policy) else value for name, value in asdict(self).items()
        }


LABELS = tuple(field.name for field in fields(TierFacts))
"""The labels' names, which vLLM wants to know before there is a tier."""
