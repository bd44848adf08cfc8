"""Checks of explicit huge pages: hugepages-backend, hugepages-pool."""

from typing import Any

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import on, resource

from kvtier_operator.planning.checks.memory import hugepages_backend, hugepages_pool

MIB = 1024**2
DISK = {"disk": {"capacity": "1Gi", "volume": {"emptyDir": {}}}}


def pages(policy: str, size: str | None = None) -> dict[str, Any]:
    wanted = {"policy": policy} | ({"pageSize": size} if size else {})
    return {"cpu": {"capacity": "1Gi", "hugepages": wanted}}


def test_not_asked_for() -> None:
    says(verdict(hugepages_backend, resource()), PASS, "NotAskedFor")


@pytest.mark.parametrize("size", ["2Mi", "1Gi"])
def test_kvtier_takes_both_sizes(size: str) -> None:
    says(verdict(hugepages_backend, resource(tiers=pages("Require", size))), PASS, "Passed", size)


def test_native_has_none() -> None:
    result = verdict(hugepages_backend, resource(backend="Native", tiers=pages("Require")))
    says(result, REJECT, "HugepagesNotSupported", "cannot use explicit huge pages", "Off")
    assert result.field == "spec.tiers.cpu.hugepages"


def test_native_falls_back() -> None:
    result = verdict(hugepages_backend, resource(backend="Native", tiers=pages("Prefer")))
    says(result, WARN, "HugepagesNotSupported", "4 KiB")


@pytest.mark.parametrize("backend", ["LMCache", "LMCacheMP"])
def test_lmcache_takes_2_mib_only(backend: str) -> None:
    says(verdict(hugepages_backend, resource(backend=backend, tiers=pages("Require"))), PASS, "Passed")
    result = verdict(hugepages_backend, resource(backend=backend, tiers=pages("Require", "1Gi")))
    says(result, REJECT, "HugepagesNotSupported", "2Mi only, not 1Gi")


def test_enough_pages() -> None:
    one = resource(tiers=pages("Require"))
    says(verdict(hugepages_pool, one, on(free_hugepages={2 * MIB: 512})), PASS, "Passed", "512 pages")


def test_one_page_short() -> None:
    one = resource(tiers=pages("Require"))
    result = verdict(hugepages_pool, one, on(free_hugepages={2 * MIB: 511}))
    says(result, REJECT, "NotEnoughHugepages", "512 pages of 2 MiB needed, 511 free", "by 1")
    assert result.field == "spec.tiers.cpu.hugepages.policy"


def test_pages_of_another_size_do_not_count() -> None:
    one = resource(tiers=pages("Require", "1Gi"))
    says(verdict(hugepages_pool, one, on(free_hugepages={2 * MIB: 4096})), REJECT, "NotEnoughHugepages")


def test_prefer_falls_back() -> None:
    one = resource(tiers=pages("Prefer"))
    result = verdict(hugepages_pool, one, on(free_hugepages={2 * MIB: 511}))
    says(result, WARN, "NotEnoughHugepages", "512 pages of 2 MiB needed, 511 free", "transparent")
    says(verdict(hugepages_pool, one, on(free_hugepages={2 * MIB: 512})), PASS, "Passed")


@pytest.mark.parametrize(
    ("engine", "disk", "switch"),
    [({}, {}, "enabled"), ({"tensorParallelSize": 2}, {}, "shmem_enabled"), ({}, DISK, "shmem_enabled")],
)
def test_shared_memory_has_a_switch_of_its_own(
    engine: dict[str, int], disk: dict[str, Any], switch: str
) -> None:
    one = resource(tiers=pages("Prefer") | disk, engine=engine)
    says(verdict(hugepages_pool, one, on(free_hugepages={})), WARN, "NotEnoughHugepages", f"their {switch} ")


@pytest.mark.parametrize("backend", ["KVTier", "LMCache", "LMCacheMP"])
def test_a_pod_cannot_prefer(backend: str) -> None:
    result = verdict(hugepages_backend, resource(backend=backend, tiers=pages("Prefer")))
    says(result, WARN, "HugepagesNotRequested", "set Require")


def test_a_cluster_has_no_pool_to_look_at() -> None:
    says(verdict(hugepages_pool, resource(tiers=pages("Require"))), PASS, "NotLooked")
