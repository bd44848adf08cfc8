"""Labels of `vllm:kv_offload_config_info`, by which dashboards find what an engine's tiers are."""

from kvtier_connector.config import GIB, MIB, ConnectorConfig
from kvtier_connector.core.index.slots import TierGeometry


def test_labels_have_the_names_that_dashboards_read() -> None:
    from kvtier_connector.vllm.metrics.cpu_tier import LABELS, TierFacts  # noqa: PLC0415 - takes seconds

    settings = ConnectorConfig(
        cpu_capacity_bytes=GIB, blocks_per_chunk=4, disk_path="/disk", disk_capacity_bytes=2 * GIB
    )
    geometry = TierGeometry(slots=128, slot_bytes=4 * MIB, slices=2, ranks=2)
    labels = TierFacts.of(settings, geometry, {0: 64}).labels()
    assert labels == {
        "cpu_num_chunks": 128,
        "cpu_blocks_per_chunk": 4,
        "cpu_kv_cache_size_bytes": GIB,
        "cpu_kv_cache_size_tokens": 128 * 64,
        "cpu_memlock": "Prefer",
        "cpu_hugepages": "Prefer",
        "disk_size_bytes": 2 * GIB,
    }
    assert tuple(labels) == LABELS
