"""Checks of memory."""

from typing import Any

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import check_input, on, resource

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.base.node import Node
from kvtier_operator.planning.checks.memory import (
    hugepages_backend,
    hugepages_pool,
    machine_memory,
    memlock,
    shared_memory,
)
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.verdict import Outcome

GIB = 1024**3


def test_a_tier_larger_than_the_machine() -> None:
    result = verdict(machine_memory, resource(), on(memory_bytes=64 * GIB))
    says(result, REJECT, "TierLargerThanMachine", "107,374,182,400 B", "68,719,476,736 B")
    assert result.field == "spec.tiers.cpu.capacity"


def test_a_tier_that_fits_beside_an_engine_that_does_not() -> None:
    result = verdict(machine_memory, resource(), on(memory_bytes=101 * GIB))
    says(result, REJECT, "BudgetLargerThanMachine", "lower the capacity (100 GiB) by 7.00 GiB")
    # on a GPU it takes none of this memory
    assert "kvCacheMemory" not in result.message


@pytest.mark.parametrize(
    ("spec", "cpu_gib", "memory_gib", "ways"),
    [
        ({}, 60, 90, "; lower the capacity (60 GiB) by"),
        ({}, 1, 70, "; set spec.engine.kvCacheMemory to less than 4 GiB, its default"),
        ({"engine": {"kvCacheMemory": "80Gi"}}, 1, 70, "; lower spec.engine.kvCacheMemory"),
        ({"engine": {"resources": {"requests": {"memory": "90Gi"}}}}, 1, 70, "; serve a smaller model here"),
        ({"replicas": 9}, 1, 70, "; lower spec.replicas, or set spec.engine.kvCacheMemory"),
    ],
    ids=str,
)
def test_what_makes_a_local_run_smaller(
    spec: dict[str, Any], cpu_gib: int, memory_gib: int, ways: str
) -> None:
    one = resource(cpu=f"{cpu_gib}Gi", **(spec | {"engine": {"device": "cpu"} | spec.get("engine", {})}))
    result = verdict(machine_memory, one, on(memory_bytes=memory_gib * GIB))
    says(result, REJECT, "BudgetLargerThanMachine", ways)
    assert ("capacity" in result.message) == (cpu_gib == 60)


@pytest.mark.parametrize("policy", ["Never", "Require"])
def test_huge_pages_count_too(policy: str) -> None:
    one = resource(tiers={"cpu": {"capacity": "100Gi", "hugepages": {"policy": policy}}})
    limit = sum(line.bytes for line in check_input(one).budget.memory)
    total = limit + (100 * GIB if policy == "Require" else 0)
    says(verdict(machine_memory, one, on(memory_bytes=total)), PASS, "Passed")
    says(verdict(machine_memory, one, on(memory_bytes=total - 1)), REJECT, "BudgetLargerThanMachine")


def test_pages_reserved_for_huge_ones_are_no_ordinary_memory() -> None:
    plain = resource(cpu="10Gi")
    limit = sum(line.bytes for line in check_input(plain).budget.memory)
    full = on(memory_bytes=limit - 1, reserved_bytes=100 * GIB, free_hugepages={2 << 20: 51_200})
    result = verdict(machine_memory, plain, full)
    says(result, REJECT, "BudgetLargerThanMachine", "beside 100 GiB of huge pages")
    for policy in ("Prefer", "Require"):
        huge = resource(tiers={"cpu": {"capacity": "10Gi", "hugepages": {"policy": policy}}})
        says(verdict(machine_memory, huge, full), PASS, "Passed")


@pytest.mark.parametrize(("capacity", "outcome"), [("6Ti", PASS), ("16Ti", WARN)])
def test_a_tier_that_no_usual_server_holds(capacity: str, outcome: Outcome) -> None:
    result = verdict(machine_memory, resource(cpu=capacity))
    assert result.outcome is outcome
    if outcome is WARN:
        says(result, WARN, "TierLargerThanServers", "start in 9,", "the picker a memory limit of")
    seen = verdict(machine_memory, resource(cpu=capacity), Observed(nodes=()))
    says(seen, PASS, "NotLooked")


@pytest.mark.parametrize(
    ("words", "tier", "field"),
    [
        ([], {"cpu": {"capacity": "1Ei"}}, "spec.tiers.cpu.capacity"),
        ([], {"cpu": {"capacity": "1Ei", "hugepages": {"policy": "Require"}}}, "spec.tiers.cpu.capacity"),
        (["--max-num-seqs", str(2**63 - 1)], None, "spec.engine"),
        (["--enable-lora", "--max-cpu-loras=1000000000000"], None, "spec.engine"),
        (["--api-server-count", "1000000000"], None, "spec.engine"),
    ],
    ids=str,
)
def test_what_no_machine_holds(words: list[str], tier: dict[str, Any] | None, field: str) -> None:
    one = resource("Qwen/Qwen3-32B", tiers=tier or {"cpu": {"capacity": "1Gi"}}, engine={"extraArgs": words})
    for observed in (Observed(), Observed(nodes=())):
        result = verdict(machine_memory, one, observed)
        says(result, REJECT, "LargerThanAnyMachine", "no machine has more than 64 TiB")
        assert result.field == field


def test_tokens_of_sequences_that_nobody_serves() -> None:
    scout = "meta-llama/Llama-4-Scout-17B-16E-Instruct"
    result = verdict(machine_memory, resource(scout, engine={"gpu": "h200", "tensorParallelSize": 4}))
    # 1,024 sequences x 10,485,760 tokens x 4 B to a power of two, without what a process has room for
    says(result, WARN, "SequencesTakeMemory", "252 GiB", "4 ranks x 63 GiB", "--max-num-seqs")
    assert result.field == "spec.engine.maxModelLen"
    shorter = {"gpu": "h200", "tensorParallelSize": 4, "maxModelLen": 1_000_000}
    says(verdict(machine_memory, resource(scout, engine=shorter)), PASS, "NotLooked")


def test_a_servers_memory_counts_too() -> None:
    one = resource(backend="LMCacheMP")
    says(verdict(machine_memory, one, on(memory_bytes=100 * GIB)), REJECT, "BudgetLargerThanMachine")


def test_replicas_of_a_local_run_add_up() -> None:
    one = resource(cpu="10Gi", replicas=3)
    says(
        verdict(machine_memory, one, on(memory_bytes=29 * GIB)), REJECT, "TierLargerThanMachine", "3 replicas"
    )


def test_a_cluster_has_no_machine_to_look_at() -> None:
    says(verdict(machine_memory, resource()), PASS, "NotLooked")


def test_shared_memory_is_computed() -> None:
    says(verdict(shared_memory, resource(backend="Native")), PASS, "Passed", "101 GiB", "100 GiB")


def test_shared_memory_given_too_small() -> None:
    result = verdict(shared_memory, resource(backend="Native", engine={"shmSize": "100Gi"}))
    says(result, REJECT, "ShmTooSmall", "107,374,182,400 B")
    assert result.field == "spec.engine.shmSize"


def test_shared_memory_of_this_machine() -> None:
    one = resource(backend="Native", cpu="10Gi", replicas=2)
    result = verdict(shared_memory, one, on(shm_bytes=19 * GIB))
    says(result, REJECT, "MachineShmTooSmall", "20 GiB", "19 GiB")
    assert result.field == "spec.tiers.cpu.capacity"
    says(verdict(shared_memory, one, on(shm_bytes=20 * GIB)), PASS, "Passed")


MIB = 1024**2
DISK = {"disk": {"capacity": "1Gi", "volume": {"emptyDir": {}}}}


def pages(policy: str, size: str | None = None) -> dict[str, Any]:
    wanted = {"policy": policy} | ({"pageSize": size} if size else {})
    return {"cpu": {"capacity": "1Gi", "hugepages": wanted}}


GRACE, ARM = {"gpu": "gb200"}, {"nodeSelector": {"kubernetes.io/arch": "arm64"}}


@pytest.mark.parametrize(
    ("page", "engine", "outcome"),
    [
        ("1Gi", {}, PASS),
        ("512Mi", {}, WARN),
        ("512Mi", ARM, PASS),
        ("1Gi", ARM, PASS),
        ("2Mi", GRACE, PASS),
        ("512Mi", GRACE, PASS),
        ("16Gi", GRACE, PASS),
        ("1Gi", GRACE, WARN),
        ("16Gi", {"gpu": "h200"}, WARN),
    ],
    ids=str,
)
def test_pages_that_kernels_have(page: str, engine: dict[str, Any], outcome: Outcome) -> None:
    one = resource(tiers=pages("Require", page), engine=engine)
    result = verdict(hugepages_backend, one)
    assert result.outcome is outcome
    if outcome is WARN:
        other = "64 KiB" if engine is GRACE else "4 KiB"
        says(result, WARN, "PagesOfAnotherKernel", f"pages of {other}", "set it to 2Mi")
    has = Node("a", {}, (), {f"hugepages-{page}": 0}, ready=True, schedulable=True)
    says(verdict(hugepages_backend, one, Observed(nodes=(has,))), PASS, "Passed")


def test_not_asked_for() -> None:
    says(verdict(hugepages_backend, resource()), PASS, "NotAskedFor")


@pytest.mark.parametrize("size", ["2Mi", "1Gi"])
def test_kvtier_takes_both_sizes(size: str) -> None:
    says(verdict(hugepages_backend, resource(tiers=pages("Require", size))), PASS, "Passed", size)


def test_native_has_none() -> None:
    result = verdict(hugepages_backend, resource(backend="Native", tiers=pages("Require")))
    says(result, REJECT, "HugepagesNotSupported", "cannot use explicit huge pages", "Never")
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
    says(verdict(hugepages_pool, resource(tiers=pages("Require"))), PASS, "LeftToNodes", "Karpenter makes no")
    says(verdict(hugepages_pool, resource(tiers=pages("Prefer"))), PASS, "NotLooked")


LOCK = "spec.tiers.cpu.memlock.policy"
ON_CPU: dict[str, Any] = {"device": "cpu", "blockSize": 32}
SMALL = on(memlock_bytes=8 * 1024**2)
OTHERS = ["Native", "LMCache", "LMCacheMP"]


def lock(policy: str, **spec: Any) -> KVCacheTier:  # noqa: ANN401 - as in YAML
    return resource(tiers={"cpu": {"capacity": "1Gi", "memlock": {"policy": policy}}}, **spec)


def test_a_resource_that_says_nothing_is_warned_of_nothing() -> None:
    for observed in (None, SMALL):
        says(verdict(memlock, resource(), observed), PASS, "LeftToDriver")
        for backend in OTHERS:
            says(verdict(memlock, resource(backend=backend), observed), PASS, "LeftToBackend")
    says(verdict(memlock, resource(engine=ON_CPU)), PASS, "LeftToNodes")
    says(verdict(memlock, resource(engine=ON_CPU), SMALL), PASS, "LockedInPart")


def test_off_on_a_gpu_says_what_it_costs_and_what_to_do() -> None:
    result = verdict(memlock, lock("Never"))
    says(result, WARN, "NotPageLocked", "353 ms in place of 100", "set Prefer", "As Off it was the default")
    assert result.field == LOCK


@pytest.mark.parametrize("spec", [{"engine": ON_CPU}, *({"backend": backend} for backend in OTHERS)], ids=str)
def test_off_elsewhere_asks_for_nothing(spec: dict[str, Any]) -> None:
    says(verdict(memlock, lock("Never", **spec), on(memlock_bytes=1)), PASS, "NotAskedFor")


@pytest.mark.parametrize("observed", [None, SMALL], ids=["cluster", "here"])
def test_on_a_gpu_no_limit_bounds_what_the_driver_locks(observed: Observed | None) -> None:
    says(verdict(memlock, lock("Prefer"), observed), PASS, "LeftToDriver", "does not bound")


@pytest.mark.parametrize("engine", [{}, ON_CPU], ids=["gpu", "cpu"])
def test_what_is_required_and_a_limit_too_low(engine: dict[str, Any]) -> None:
    result = verdict(memlock, lock("Require", engine=engine), SMALL)
    says(result, REJECT, "MemlockTooLow", "1 GiB", "8 MiB", "to Prefer")
    assert result.field == LOCK


def test_what_is_preferred_and_a_limit_too_low() -> None:
    """What every laptop has: no warning, but the number."""
    result = verdict(memlock, lock("Prefer", engine=ON_CPU), SMALL)
    says(result, PASS, "LockedInPart", "1 GiB to lock", "at most 8 MiB is locked")


@pytest.mark.parametrize("policy", ["Require", "Prefer"])
@pytest.mark.parametrize("limit", [GIB, None])
def test_a_limit_high_enough(policy: str, limit: int | None) -> None:
    says(verdict(memlock, lock(policy, engine=ON_CPU), on(memlock_bytes=limit)), PASS, "Passed", "1 GiB")


@pytest.mark.parametrize("policy", ["Require", "Prefer"])
def test_huge_pages_need_no_limit(policy: str) -> None:
    cpu = {"capacity": "1Gi", "hugepages": {"policy": "Require"}, "memlock": {"policy": policy}}
    says(
        verdict(memlock, resource(tiers={"cpu": cpu}, engine=ON_CPU), SMALL), PASS, "Passed", "never swapped"
    )


def test_nodes_are_checked_before_rollout() -> None:
    says(verdict(memlock, lock("Require")), PASS, "CheckedOnNodes", "IPC_LOCK as root", "LimitMEMLOCK")
    says(verdict(memlock, lock("Prefer", engine=ON_CPU)), PASS, "LeftToNodes", "1 GiB", "LimitMEMLOCK")


@pytest.mark.parametrize("backend", OTHERS)
def test_other_backends_lock_by_themselves(backend: str) -> None:
    says(verdict(memlock, lock("Require", backend=backend)), WARN, "MemlockNotVerified", "locks and reports")
    for observed in (None, SMALL):
        says(verdict(memlock, lock("Prefer", backend=backend), observed), PASS, "LeftToBackend", "by itself")
