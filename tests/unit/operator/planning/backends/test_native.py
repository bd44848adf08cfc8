import pytest
from tests.unit.operator.planning.backends.planned import (
    GIB,
    extra_config,
    planned,
    published,
    transfer_config,
)

from kvtier_common.tier import Tier

NATIVE: dict[str, object] = {"spec.backend": "Native", "spec.engine.tensorParallelSize": 2}
DISK: dict[str, object] = NATIVE | {
    "spec.tiers.disk": {"capacity": "1Ti", "volume": {"emptyDir": {}}},
}


def test_cpu_bytes_are_one_engine_s_all_ranks_together() -> None:
    plan = planned(NATIVE)
    assert transfer_config(plan) == {
        "kv_connector": "OffloadingConnector",
        "kv_role": "kv_both",
        "kv_connector_extra_config": {"cpu_bytes_to_use": 100 * GIB},
    }
    assert plan.bytes_per_rank[Tier.CPU] == 50 * GIB


def test_each_engine_of_a_pod_gets_its_share() -> None:
    plan = planned(NATIVE | {"spec.engine.dataParallelSize": 4})
    assert extra_config(plan)["cpu_bytes_to_use"] == 25 * GIB
    assert plan.shm_bytes == 100 * GIB


def test_the_tier_lives_in_shared_memory_and_nowhere_else() -> None:
    plan = planned(NATIVE)
    assert (plan.shm_bytes, plan.tier_memory_bytes, plan.hugepages) == (100 * GIB, 0, None)


def test_the_index_is_budgeted() -> None:
    # 409,600 tokens in 16-token blocks: 25,600 entries of 600 bytes, over two ranks
    assert planned(NATIVE).per_rank_overhead_bytes == 25_600 * 600 // 2


def test_disk_is_vllm_s_tiering_spec() -> None:
    plan = planned(DISK)
    extra = extra_config(plan)
    assert extra["spec_name"] == "TieringOffloadingSpec"
    assert (extra["blocks_per_chunk"], plan.tokens_per_chunk) == (16, 256)
    assert "block_size" not in extra  # which vLLM refuses where groups of layers have unlike blocks
    [tier] = extra["secondary_tiers"]
    assert tier["type"] == "fs"
    assert tier["root_dir"].startswith("/var/lib/kvtier/disk/0/native/")
    assert plan.bytes_per_rank[Tier.DISK] == 512 * GIB


def test_chunks_on_disk_are_whole_blocks_of_the_engine() -> None:
    plan = planned(DISK | {"spec.engine.blockSize": 48})
    assert (extra_config(plan)["blocks_per_chunk"], plan.tokens_per_chunk) == (6, 288)


def test_chunks_on_disk_are_single_blocks_where_layers_keep_a_state() -> None:
    plan = planned(DISK | {"spec.engine.tensorParallelSize": 1}, published("LFM2-1.2B"))
    assert (extra_config(plan)["blocks_per_chunk"], plan.tokens_per_chunk) == (1, 16)


def test_a_chunk_is_counted_in_blocks_of_the_layers_that_keep_all() -> None:
    plan = planned(DISK | {"spec.engine.tensorParallelSize": 1}, published("google--gemma-4-26B-A4B"))
    assert (extra_config(plan)["blocks_per_chunk"], plan.tokens_per_chunk) == (8, 256)  # of 32 tokens


@pytest.mark.parametrize(
    "change",
    [
        {"spec.model.revision": "abc"},
        {"spec.engine.kvCacheDtype": "fp8"},
        {"spec.engine.tensorParallelSize": 4},
        {"spec.engine.blockSize": 32},
        {"spec.engine.image": "mine:1"},
        {"spec.engine.extraArgs": ["--quantization", "awq"]},
    ],
    ids=str,
)
def test_what_changes_the_bytes_changes_the_folder(change: dict[str, object]) -> None:
    def folder(changes: dict[str, object]) -> str:
        root: str = extra_config(planned(changes))["secondary_tiers"][0]["root_dir"]
        return root

    assert folder(DISK | change) != folder(DISK)
    assert folder(DISK | {"spec.replicas": 7}) == folder(DISK)
