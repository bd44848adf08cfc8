import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.operator.planning.backends.planned import GIB, planned

from kvtier_operator.planning.backends.lmcache import LMCacheSettings
from kvtier_operator.planning.backends.parts import gib_text
from kvtier_operator.planning.base.tier_plan import BackendPlan

MIB = 1 << 20
LMCACHE: dict[str, object] = {"spec.backend": "LMCache", "spec.engine.tensorParallelSize": 2}
DISK: dict[str, object] = LMCACHE | {
    "spec.tiers.disk": {"capacity": "1Ti", "volume": {"emptyDir": {}}},
}
# lmcache 0.5.6, lmcache/v1/config.py, _CONFIG_DEFINITIONS: key -> what its env_converter makes of the text
KEYS: dict[str, Any] = {
    "chunk_size": int,
    "local_cpu": lambda text: {"True": True, "False": False}[text],
    "max_local_cpu_size": float,
    "local_cpu_use_hugepages": lambda text: {"True": True, "False": False}[text],
    "local_disk": str,
    "max_local_disk_size": float,
    "remote_url": str,
    "remote_serde": str,
    "extra_config": json.loads,
}


def from_env(plan: BackendPlan) -> dict[str, Any]:
    own = {"LMCACHE_CONFIG_FILE", "LMCACHE_TRACK_USAGE"}
    settings = {
        name.removeprefix("LMCACHE_").lower(): value for name, value in plan.env.items() if name not in own
    }
    return {key: KEYS[key](value) for key, value in settings.items()}


def from_file(plan: BackendPlan) -> dict[str, Any]:
    [file] = plan.files
    assert plan.env["LMCACHE_CONFIG_FILE"] == file.path
    content: dict[str, Any] = yaml.safe_load(file.content)
    return content


def test_sizes_are_gib_a_rank() -> None:
    assert from_env(planned(LMCACHE)) == {"chunk_size": 256, "local_cpu": True, "max_local_cpu_size": 50.0}
    assert planned(LMCACHE).env["LMCACHE_MAX_LOCAL_CPU_SIZE"] == "50.0"


@pytest.mark.parametrize(
    "changes",
    [
        LMCACHE,
        DISK,
        DISK | {"spec.tiers.disk.directIO": False},
        LMCACHE | {"spec.tiers.cpu.capacity": "41.3Gi", "spec.engine.tensorParallelSize": 8},
        LMCACHE | {"spec.tiers.cpu.hugepages": {"policy": "Require"}},
        DISK | {"spec.engine.dataParallelSize": 3, "spec.tiers.disk.capacity": "777G"},
    ],
    ids=lambda changes: "+".join(sorted(set(changes) - set(LMCACHE))) or "plain",
)
def test_environment_and_file_say_the_same(changes: dict[str, object]) -> None:
    plan = planned(changes)
    assert from_env(plan) == from_file(plan)


def test_removed_and_reporting_settings() -> None:
    plan = planned(DISK)
    assert plan.env["LMCACHE_TRACK_USAGE"] == "false"
    assert "LMCACHE_USE_EXPERIMENTAL" not in plan.env


def test_disk_needs_the_cpu_buffer_too() -> None:
    settings = from_env(planned(DISK))
    assert settings["local_cpu"] is True
    assert settings["max_local_cpu_size"] == 50.0
    assert settings["max_local_disk_size"] == 512.0
    assert settings["extra_config"] == {"use_odirect": True}


def test_paths_are_absolute_one_for_each_rank() -> None:
    assert from_env(planned(DISK))["local_disk"].split(",") == [
        "file:///var/lib/kvtier/disk/0/lmcache/rank-0",
        "file:///var/lib/kvtier/disk/0/lmcache/rank-1",
    ]


def test_ranks_are_dealt_out_over_the_volumes() -> None:
    changes = DISK | {
        "spec.engine.tensorParallelSize": 4,
        "spec.tiers.disk.extraVolumes": [{"ephemeral": {"storageClassName": "nvme"}}],
    }
    plan = planned(changes)
    assert [path.split("/")[-3:] for path in from_env(plan)["local_disk"].split(",")] == [
        ["0", "lmcache", "rank-0"],
        ["1", "lmcache", "rank-1"],
        ["0", "lmcache", "rank-2"],
        ["1", "lmcache", "rank-3"],
    ]
    # 256 GiB a rank, two ranks a volume, a tenth more for the file system
    assert plan.mounts[0].source == {"emptyDir": {"sizeLimit": "576717Mi"}}
    claim = plan.mounts[1].source["ephemeral"]["volumeClaimTemplate"]["spec"]
    assert claim["storageClassName"] == "nvme"
    assert claim["resources"]["requests"]["storage"] == "576717Mi"


def test_volumes_without_a_rank_are_named() -> None:
    extra: list[object] = [{"ephemeral": {}}, {"ephemeral": {}}]
    plan = planned(DISK | {"spec.engine.tensorParallelSize": 2, "spec.tiers.disk.extraVolumes": extra})
    assert any("1 of 3 disk volumes stay empty" in note for note in plan.notes)


def test_what_an_earlier_start_wrote_is_deleted() -> None:
    assert planned(DISK).scratch_dirs == (
        "/var/lib/kvtier/disk/0/lmcache/rank-0",
        "/var/lib/kvtier/disk/0/lmcache/rank-1",
    )
    assert planned(LMCACHE).scratch_dirs == ()
    assert planned(DISK | {"spec.backend": "Native"}).scratch_dirs == ()


def test_mla_is_stored_by_the_first_rank_alone() -> None:
    mla = {"spec.model.name": "deepseek-ai/DeepSeek-V3", "spec.engine.tensorParallelSize": 8}
    plan = planned(DISK | mla)
    settings = from_env(plan)
    assert (settings["max_local_cpu_size"], settings["max_local_disk_size"]) == (100.0, 1024.0)
    assert plan.tier_memory_bytes == 100 * GIB
    assert plan.mounts[0].source == {"emptyDir": {"sizeLimit": "1153434Mi"}}


def test_explicit_pages_only_when_required() -> None:
    required = planned(LMCACHE | {"spec.tiers.cpu.hugepages": {"policy": "Require"}})
    assert required.hugepages is not None
    assert (required.hugepages.pages, required.tier_memory_bytes) == (51_200, 0)
    assert from_env(required)["local_cpu_use_hugepages"] is True
    preferred = planned(LMCACHE | {"spec.tiers.cpu.hugepages": {"policy": "Prefer"}})
    assert "local_cpu_use_hugepages" not in from_env(preferred)
    assert (preferred.hugepages, preferred.tier_memory_bytes) == (None, 100 * GIB)


def test_direct_io_that_cannot_be_is_said() -> None:
    odd = DISK | {"spec.model.geometry": {"kvBytesPerToken": 99}}
    assert any("directIO has no effect" in note for note in planned(odd).notes)
    assert not any("directIO" in note for note in planned(DISK).notes)


@given(mib=st.integers(1, 2**33))
def test_sizes_come_back_exactly(mib: int) -> None:
    text = gib_text(mib * MIB)
    assert set(text) <= set("0123456789.")
    # as LMCache makes bytes of it again
    assert int(float(text) * 1024**3) == mib * MIB
    assert LMCacheSettings(cpu_bytes=mib * MIB).values()["max_local_cpu_size"] == float(text)
