"""The disk tier that backend KVTier is given, beside what the connector itself makes of it."""

from pathlib import Path

import pytest
from tests.unit.operator.planning.backends.planned import GIB, extra_config, planned, resource

from kvtier_common.tier import Tier
from kvtier_connector.config import ConnectorConfig, parse_extra_config
from kvtier_connector.core.disk.files.fingerprint import fingerprint
from kvtier_connector.core.disk.files.store import StoreRequest
from kvtier_connector.core.index.slots import TierGeometry, tier_geometry
from kvtier_operator.planning.kv_cache.cost import resolve_geometry
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.tiers.capacity import chunk_bytes

MIB, TIB = 1 << 20, 1 << 40
DISK: dict[str, object] = {"spec.tiers.disk": {"capacity": "1Ti", "volume": {"emptyDir": {}}}}
SHA256_AND_GROUP = 36
CASES: dict[str, dict[str, object]] = {
    "one rank": {},
    "two ranks": {"spec.engine.tensorParallelSize": 2},
    "heads kept twice": {"spec.engine.tensorParallelSize": 16},
    "two engines": {"spec.engine.tensorParallelSize": 2, "spec.engine.dataParallelSize": 2},
    "a latent": {"spec.model.name": "deepseek-ai/DeepSeek-V3", "spec.engine.tensorParallelSize": 8},
    "on a CPU": {"spec.engine.device": "cpu", "spec.engine.blockSize": 32},
    "parts that are not aligned": {
        "spec.model.geometry": {"layers": 3, "kvHeads": 2, "headDim": 24},
        "spec.engine.tensorParallelSize": 2,
        "spec.tiers.disk": {"capacity": "100Mi", "volume": {"emptyDir": {}}},
    },
}


def connector_config(changes: dict[str, object]) -> ConnectorConfig:
    return parse_extra_config(extra_config(planned(changes)))


def in_the_connector(changes: dict[str, object]) -> tuple[ConnectorConfig, TierGeometry]:
    """What one engine makes of its settings, with the model's KV shape as the planner sees it."""
    config, spec = connector_config(changes), resource(changes).spec
    geometry = resolve_geometry(spec, Observed())
    slots = tier_geometry(
        config,
        block_bytes=geometry.kv_bytes_per_token_per_rank * geometry.block_tokens,
        blocks_per_chunk=config.blocks_per_chunk,
        ranks=spec.engine.tensor_parallel_size,
        replicated=geometry.stored_once,
    )
    return config, slots


@pytest.mark.parametrize("changes", [DISK | case for case in CASES.values()], ids=CASES)
def test_as_many_chunks_are_planned_as_the_connector_makes_room_for(changes: dict[str, object]) -> None:
    config, slots = in_the_connector(changes)
    request = StoreRequest(
        path=Path(config.disk_path),
        capacity_bytes=config.disk_capacity_bytes,
        block_bytes=slots.chunk_bytes,
        key_bytes=SHA256_AND_GROUP,
        fingerprint=fingerprint({}),
        direct=config.disk_direct_io,
        holder="",
    )
    plan = planned(changes)
    assert plan.chunks[Tier.DISK].chunks == request.shape.slots
    assert chunk_bytes(resolve_geometry(resource(changes).spec, Observed()), plan) == slots.chunk_bytes


def test_the_folder_lies_in_the_volume() -> None:
    config, plan = connector_config(DISK), planned(DISK)
    [mount] = plan.mounts
    assert config.disk_path == f"{mount.mount_path}/kvtier"
    assert config.disk_capacity_bytes == TIB
    assert config.disk_direct_io
    assert plan.bytes_per_rank[Tier.DISK] == TIB


def test_the_volume_is_larger_than_the_files() -> None:
    [mount] = planned(DISK).mounts
    assert mount.source == {"emptyDir": {"sizeLimit": f"{1_153_434}Mi"}}  # 1.1 x 1,048,576


def test_the_page_cache_may_be_kept() -> None:
    disk = {"capacity": "1Ti", "volume": {"emptyDir": {}}, "directIO": False}
    assert not connector_config({"spec.tiers.disk": disk}).disk_direct_io


@pytest.mark.parametrize(
    ("engines", "an_hour", "bound_bytes"),
    [(1, "200Gi", 200 * GIB), (4, "200Gi", 50 * GIB), (3, 10, 3), (2, 1, 1)],
)
def test_engines_of_one_pod_share_what_may_be_written(
    engines: int, an_hour: str | int, bound_bytes: int
) -> None:
    changes = DISK | {"spec.tiers.disk.writesPerHour": an_hour, "spec.engine.dataParallelSize": engines}
    config = connector_config(changes)
    assert config.disk_write_bytes_per_hour == bound_bytes  # never 0, which the connector takes for no bound


def test_without_a_bound_the_connector_has_none() -> None:
    assert connector_config(DISK).disk_write_bytes_per_hour == 0
    assert "disk_write_bytes_per_hour" not in extra_config(planned(DISK))


def test_engines_of_one_pod_share_the_capacity_and_name_one_folder() -> None:
    changes = DISK | {"spec.engine.dataParallelSize": 4, "spec.engine.tensorParallelSize": 2}
    config = connector_config(changes)
    assert config.disk_capacity_bytes * 4 == TIB
    assert planned(changes).bytes_per_rank[Tier.DISK] * 8 == TIB
    assert config.disk_path == connector_config(DISK).disk_path  # the connector tells them apart


def test_memory_of_the_index_is_budgeted() -> None:
    # 1 TiB in chunks of 16 MiB and 412 bytes: 65,534 of 800 bytes each, over two ranks
    two = {"spec.engine.tensorParallelSize": 2}
    more = planned(DISK | two).per_rank_overhead_bytes - planned(two).per_rank_overhead_bytes
    assert more == 65_534 * 800 // 2


def test_a_tier_of_nothing_is_still_a_plan() -> None:
    nothing = {"spec.tiers.disk": {"capacity": 1, "volume": {"emptyDir": {}}}}
    plan = planned(nothing | {"spec.engine.dataParallelSize": 2})
    assert plan.chunks[Tier.DISK].chunks == 0


def test_without_a_disk_nothing_is_said_of_one() -> None:
    plan = planned({})
    assert not any("disk" in name for name in extra_config(plan))
    assert (plan.mounts, plan.chunks, plan.bytes_per_rank[Tier.DISK]) == ((), {}, 0)


def test_memory_is_the_same_with_a_disk_behind_it() -> None:
    with_disk, without = planned(DISK), planned({})
    assert with_disk.tier_memory_bytes == without.tier_memory_bytes == 100 * GIB
    assert with_disk.shm_bytes == without.shm_bytes == 0
