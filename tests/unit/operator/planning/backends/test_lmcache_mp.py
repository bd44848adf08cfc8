import json
from typing import Any

from tests.unit.operator.planning.backends.planned import GIB, extra_config, planned, transfer_config

from kvtier_operator.planning.plan import BackendPlan, Sidecar

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
    assert plan.cpu_bytes_per_rank == 25 * GIB
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
