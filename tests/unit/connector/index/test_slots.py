from typing import Any

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from kvtier_connector.config import GIB, HUGEPAGE_BYTES, MIB, ConnectorConfig, Policy
from kvtier_connector.core.index.slots import TierGeometry, tier_geometry
from kvtier_connector.errors import SettingError

CONFIGS = st.builds(
    ConnectorConfig,
    cpu_capacity_bytes=st.integers(64 * MIB, 600 * GIB),
    hugepages=st.sampled_from(Policy),
    hugepage_bytes=st.sampled_from(HUGEPAGE_BYTES),
)
SHAPES = st.fixed_dictionaries(
    {
        "block_bytes": st.integers(1024, 8 * MIB),
        "blocks_per_chunk": st.integers(1, 16),
        "ranks": st.integers(1, 8),
        "replicated": st.booleans(),
    }
)


@given(CONFIGS, SHAPES)
def test_the_region_never_exceeds_the_capacity(config: ConnectorConfig, shape: dict[str, Any]) -> None:
    try:
        geometry = tier_geometry(config, **shape)
    except SettingError:
        reject()
    request = geometry.request(config).round_up()
    assert request.slices * request.slice_bytes <= config.cpu_capacity_bytes
    assert geometry.slots * geometry.slot_bytes <= request.slice_bytes


def test_figures_of_a_known_model() -> None:
    # Qwen3-32B in bf16 has 262,144 bytes a token; over 2 ranks a block of 16 tokens is 2 MiB on each.
    config = ConnectorConfig(cpu_capacity_bytes=100 * GIB)
    geometry = tier_geometry(config, block_bytes=2 * MIB, blocks_per_chunk=4, ranks=2, replicated=False)
    assert geometry == TierGeometry(slots=6400, slot_bytes=8 * MIB, slices=2, ranks=2)
    assert geometry.slots * 64 == 409_600


def test_replicated_ranks_share_one_copy() -> None:
    config = ConnectorConfig(cpu_capacity_bytes=GIB)
    geometry = tier_geometry(config, block_bytes=MIB, blocks_per_chunk=1, ranks=8, replicated=True)
    assert (geometry.slices, geometry.slots, geometry.request(config).shared) == (1, 1024, True)


def test_a_capacity_that_holds_no_chunk_is_refused_with_the_numbers() -> None:
    config = ConnectorConfig(cpu_capacity_bytes=4 * MIB)
    with pytest.raises(SettingError, match=r"cpu_capacity_bytes: 4\.0 MiB in 2 slice.*chunk of 3\.0 MiB"):
        tier_geometry(config, block_bytes=3 * MIB, blocks_per_chunk=1, ranks=2, replicated=False)
