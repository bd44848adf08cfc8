"""Checks against the machine of a local run: machine-memory, shared-memory."""

from typing import Any

import pytest
from tests.cases.checks import PASS, REJECT, says, verdict
from tests.cases.planning import check_input, on, resource

from kvtier_operator.planning.checks.memory import machine_memory, shared_memory

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


@pytest.mark.parametrize("policy", ["Off", "Require"])
def test_huge_pages_count_too(policy: str) -> None:
    one = resource(tiers={"cpu": {"capacity": "100Gi", "hugepages": {"policy": policy}}})
    limit = sum(line.bytes for line in check_input(one).budget.memory)
    total = limit + (100 * GIB if policy == "Require" else 0)
    says(verdict(machine_memory, one, on(memory_bytes=total)), PASS, "Passed")
    says(verdict(machine_memory, one, on(memory_bytes=total - 1)), REJECT, "BudgetLargerThanMachine")


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
