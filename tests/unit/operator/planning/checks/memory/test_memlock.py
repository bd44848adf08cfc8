"""The check memlock: who locks the CPU tier, what bounds that, and what it costs where nobody does."""

from typing import Any

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import on, resource

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.checks.memory import memlock
from kvtier_operator.planning.observed import Observed

GIB = 1024**3
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
    result = verdict(memlock, lock("Off"))
    says(result, WARN, "NotPageLocked", "353 ms in place of 100", "set Prefer", "Off was the default once")
    assert result.field == LOCK


@pytest.mark.parametrize("spec", [{"engine": ON_CPU}, *({"backend": backend} for backend in OTHERS)], ids=str)
def test_off_elsewhere_asks_for_nothing(spec: dict[str, Any]) -> None:
    says(verdict(memlock, lock("Off", **spec), on(memlock_bytes=1)), PASS, "NotAskedFor")


@pytest.mark.parametrize("observed", [None, SMALL], ids=["cluster", "here"])
def test_on_a_gpu_no_limit_bounds_what_the_driver_locks(observed: Observed | None) -> None:
    says(verdict(memlock, lock("Prefer"), observed), PASS, "LeftToDriver", "does not bound")


@pytest.mark.parametrize("engine", [{}, ON_CPU], ids=["cuda", "cpu"])
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
