import pytest
from tests.unit.operator.planning.backends.planned import (
    GIB,
    extra_config,
    planned,
    published,
    transfer_config,
)

from kvtier_common.tier import Tier
from kvtier_connector.config import ConnectorConfig, Policy, parse_extra_config

MIB = 1 << 20


def connector_config(changes: dict[str, object]) -> ConnectorConfig:
    return parse_extra_config(extra_config(planned(changes)))


def test_the_connector_reads_what_is_rendered() -> None:
    config = connector_config({})
    assert config.cpu_capacity_bytes == 100 * GIB
    assert (config.hugepages, config.memlock) == (Policy.NEVER, Policy.PREFER)
    assert config.blocks_per_chunk == 4


@pytest.mark.parametrize("policy", ["Require", "Never"])
def test_the_connector_locks_as_the_resource_says(policy: str) -> None:
    assert connector_config({"spec.tiers.cpu.memlock": {"policy": policy}}).memlock == policy


@pytest.mark.parametrize(("asked", "given"), [({}, True), ({"layeredLoads": False}, False)])
def test_layers_wait_for_their_own_part_unless_the_resource_says_no(
    asked: dict[str, object], given: bool
) -> None:
    changes: dict[str, object] = {f"spec.tiers.cpu.{name}": value for name, value in asked.items()}
    assert connector_config(changes).layered_loads is given


def test_a_load_that_fails_is_computed_again() -> None:
    assert transfer_config(planned({}))["kv_load_failure_policy"] == "recompute"


def test_chunks_are_single_blocks_on_the_cpu() -> None:
    assert connector_config({"spec.engine.device": "cpu"}).blocks_per_chunk == 1


def test_chunks_are_single_blocks_where_layers_keep_a_state() -> None:
    # vLLM stores a state at the end of a block, and only if a chunk ends there too
    plan = planned({"spec.engine.tensorParallelSize": 1}, published("LFM2-1.2B"))
    assert (parse_extra_config(extra_config(plan)).blocks_per_chunk, plan.tokens_per_chunk) == (1, 16)


@pytest.mark.parametrize(
    ("ranks", "page", "per_rank_gib", "pages"),
    [(4, "1Gi", 63, 252), (2, "1Gi", 125, 250), (8, "2Mi", 31.25, 128_000), (4, "16Gi", 64, 16)],
)
def test_each_rank_is_rounded_up_to_a_page(ranks: int, page: str, per_rank_gib: float, pages: int) -> None:
    plan = planned(
        {
            "spec.model.name": "meta-llama/Llama-3.1-70B-Instruct",
            "spec.engine.tensorParallelSize": ranks,
            "spec.tiers.cpu.capacity": "250Gi",
            "spec.tiers.cpu.hugepages": {"policy": "Require", "pageSize": page},
        }
    )
    assert plan.hugepages is not None
    assert plan.hugepages.pages == pages
    assert plan.bytes_per_rank[Tier.CPU] == int(per_rank_gib * GIB)
    assert extra_config(plan)["cpu_capacity_bytes"] == plan.hugepages.bytes
    assert plan.tier_memory_bytes == 0


def test_a_latent_beside_states_is_a_slice_for_each_rank() -> None:
    # vLLM stores one copy only where every layer is the same on all ranks, and a state is not
    latent = {"layers": 4, "kvLoraRank": 512, "qkRopeHeadDim": 64}
    plan = planned(
        {
            "spec.model.geometry": latent | {"linearLayers": 12, "stateBytesPerLayer": 4 << 20},
            "spec.engine.tensorParallelSize": 8,
            "spec.tiers.cpu.capacity": "100Gi",
            "spec.tiers.cpu.hugepages": {"policy": "Require", "pageSize": "1Gi"},
        }
    )
    assert plan.hugepages is not None
    assert plan.hugepages.pages == 8 * 13


def test_an_mla_latent_is_one_slice() -> None:
    plan = planned(
        {
            "spec.model.name": "deepseek-ai/DeepSeek-V3",
            "spec.engine.tensorParallelSize": 8,
            "spec.tiers.cpu.capacity": "100Gi",
            "spec.tiers.cpu.hugepages": {"policy": "Require", "pageSize": "1Gi"},
        }
    )
    assert plan.hugepages is not None
    assert plan.hugepages.pages == 100


def test_engines_of_one_pod_share_the_capacity() -> None:
    plan = planned({"spec.engine.dataParallelSize": 2, "spec.tiers.cpu.hugepages": {"policy": "Require"}})
    assert extra_config(plan)["cpu_capacity_bytes"] == 50 * GIB
    assert plan.hugepages is not None
    assert plan.hugepages.bytes == 100 * GIB


def test_prefer_requests_no_pages_and_budgets_ordinary_memory() -> None:
    plan = planned({"spec.tiers.cpu.hugepages": {"policy": "Prefer"}})
    assert plan.hugepages is None
    assert plan.tier_memory_bytes == 100 * GIB
    assert connector_config({"spec.tiers.cpu.hugepages": {"policy": "Prefer"}}).hugepages is Policy.PREFER
    assert any("cannot prefer" in note for note in plan.notes)


def test_the_tier_is_ordinary_memory_without_pages() -> None:
    plan = planned({"spec.engine.tensorParallelSize": 2})
    assert (plan.tier_memory_bytes, plan.shm_bytes, plan.hugepages) == (100 * GIB, 0, None)
