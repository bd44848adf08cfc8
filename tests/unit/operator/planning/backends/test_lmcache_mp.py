import json
from typing import Any

from tests.unit.operator.planning.backends.planned import (
    GIB,
    extra_config,
    planned,
    published,
    transfer_config,
)

from kvtier_common.tier import Tier
from kvtier_operator.planning.base.container_parts import Sidecar
from kvtier_operator.planning.base.tier_plan import BackendPlan

SERVER: dict[str, object] = {"spec.backend": "LMCacheMP", "spec.engine.tensorParallelSize": 2}
DISK: dict[str, object] = SERVER | {
    "spec.tiers.disk": {"capacity": "1Ti", "volume": {"emptyDir": {}}},
}


def server(plan: BackendPlan) -> Sidecar:
    [sidecar] = plan.sidecars
    return sidecar


def option(plan: BackendPlan, name: str) -> str:
    command = server(plan).command
    return command[command.index(name) + 1]


def adapter(plan: BackendPlan) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(option(plan, "--l2-adapter"))
    return parsed


def test_the_engine_finds_the_server() -> None:
    plan = planned(SERVER)
    config = transfer_config(plan)
    assert config["kv_connector"] == "LMCacheMPConnector"
    assert config["kv_connector_module_path"] == "lmcache.integration.vllm.lmcache_mp_connector"
    assert extra_config(plan)["lmcache.mp.port"] == int(option(plan, "--port")) == 5555
    assert extra_config(plan)["lmcache.mp.host"] == f"tcp://{option(plan, '--host')}"


def test_both_sides_know_that_shared_memory_is_not_shared() -> None:
    plan = planned(SERVER)
    assert "--isolated-ipc" in server(plan).command
    assert extra_config(plan)["lmcache.mp.isolated_ipc"] is True


def test_ports_make_way_for_the_engine() -> None:
    plan = planned(SERVER | {"spec.engine.port": 5556})
    assert set(server(plan).ports.values()) == {5565, 5566, 5567}
    assert extra_config(plan)["lmcache.mp.port"] == 5565


def test_the_whole_tier_is_one_server_s_for_all_engines() -> None:
    plan = planned(SERVER | {"spec.engine.dataParallelSize": 2})
    assert option(plan, "--l1-size-gb") == "100.0"
    assert plan.bytes_per_rank[Tier.CPU] == 25 * GIB
    assert option(plan, "--max-workers") == "4"


def test_the_tier_is_the_sidecar_s_memory() -> None:
    plan = planned(SERVER)
    assert (plan.tier_memory_bytes, plan.shm_bytes) == (0, 0)
    assert server(plan).memory_bytes == 105 * GIB


def test_explicit_pages_are_not_memory() -> None:
    plan = planned(SERVER | {"spec.tiers.cpu.hugepages": {"policy": "Require"}})
    assert plan.hugepages is not None
    assert plan.hugepages.bytes == 100 * GIB
    assert server(plan).memory_bytes == 5 * GIB
    assert {"--l1-use-hugepages", "--no-l1-use-lazy"} <= set(server(plan).command)
    assert "--l1-use-hugepages" not in server(planned(SERVER)).command


def test_disk_is_bounded_by_evicting() -> None:
    assert adapter(planned(DISK)) == {
        "type": "fs_native",
        "base_path": "/var/lib/kvtier/disk/0/lmcache",
        "use_odirect": True,
        "max_capacity_gb": 1024.0,
        "eviction": {"eviction_policy": "LRU", "trigger_watermark": 0.9, "eviction_ratio": 0.1},
    }


def test_disk_starts_empty() -> None:
    shell, flag, script, folder, *rest = server(planned(DISK)).command
    assert (shell, flag) == ("/bin/sh", "-c")
    assert script.startswith('rm -rf -- "$0"')
    assert folder == adapter(planned(DISK))["base_path"]
    assert rest[:2] == ["lmcache", "server"]


def test_the_server_sees_gpus_only_where_there_are_any() -> None:
    assert server(planned(SERVER)).env["NVIDIA_VISIBLE_DEVICES"] == "all"
    assert "NVIDIA_VISIBLE_DEVICES" not in server(planned(SERVER | {"spec.engine.device": "cpu"})).env


def test_every_process_hashes_alike() -> None:
    assert server(planned(SERVER)).env["PYTHONHASHSEED"] == "0"


HYBRID: dict[str, object] = SERVER | {
    "spec.model.name": "Qwen/Qwen3.5-27B",
    "spec.engine.tensorParallelSize": 1,
}
WINDOWS: dict[str, object] = SERVER | {"spec.model.name": "openai/gpt-oss-120b"}


def test_a_chunk_is_whole_blocks_of_the_engine() -> None:
    assert (option(planned(SERVER), "--chunk-size"), planned(SERVER).tokens_per_chunk) == ("256", 256)
    hybrid = planned(HYBRID)
    assert (option(hybrid, "--chunk-size"), hybrid.tokens_per_chunk) == ("784", 784)
    kimi = planned(SERVER | {"spec.engine.tensorParallelSize": 1}, published("moonshotai--Kimi-K3"))
    assert (option(kimi, "--chunk-size"), kimi.tokens_per_chunk) == ("5760", 5760)
    unlike = SERVER | {"spec.engine.tensorParallelSize": 1, "spec.engine.blockSize": 96}
    gemma = planned(unlike, published("google--gemma-4-26B-A4B"))
    assert (option(gemma, "--chunk-size"), gemma.tokens_per_chunk) == ("384", 384)  # blocks of 192 and 96
    odd = planned(SERVER | {"spec.engine.blockSize": 48})
    assert (option(odd, "--chunk-size"), odd.tokens_per_chunk) == ("288", 288)


def test_hybrid_models_have_objects_apart() -> None:
    assert "--separate-object-groups" in server(planned(HYBRID)).command
    assert "--separate-object-groups" in server(planned(WINDOWS)).command
    assert "--separate-object-groups" not in server(planned(SERVER)).command


def test_a_chunk_holds_its_part_of_each_window() -> None:
    # 36,864 B of each token; 18 layers x 2 x 8 heads x 64 x 2 B of each of the last 128
    assert planned(WINDOWS).bytes_per_chunk == 256 * 36_864 + 128 * 36_864
    # windows of 1,024 tokens: of each chunk all 256
    large = planned(SERVER | {"spec.model.name": "google/gemma-3-27b-it"})
    assert large.bytes_per_chunk == 256 * 480 * 1024**2 // 1024 + 256 * 81_920
    assert planned(SERVER).bytes_per_chunk is None
    assert planned(HYBRID).bytes_per_chunk is None


def test_the_report_says_what_states_take() -> None:
    assert any("784 tokens" in note for note in planned(HYBRID).notes)
    default = "for every 8,192 tokens of it, vLLM's default of --max-num-batched-tokens by the GPU"
    assert any(default in note for note in planned(HYBRID).notes)
    said = HYBRID | {"spec.engine.extraArgs": ["--max-num-batched-tokens", "4096"]}
    assert any("for every 4,096 tokens of it, --max-num" in note for note in planned(said).notes)
    assert any("a part of every window with each chunk" in note for note in planned(WINDOWS).notes)
