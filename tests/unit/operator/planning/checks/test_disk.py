"""Checks of the disk tier."""

from typing import Any

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import on, resource

from kvtier_operator.planning.checks.check import Check
from kvtier_operator.planning.checks.disk import (
    disk_behind_memory,
    disk_folder,
    disk_restart,
    host_path,
    machine_disk,
)
from kvtier_operator.planning.observed import Observed

GIB = 1024**3
DISK = {"disk": {"capacity": "100Gi", "volume": {"emptyDir": {}}}}
FOLDER = {"disk": {"capacity": "100Gi", "volume": {"hostPath": {"path": "/mnt/nvme0"}}}}
CLAIM = {"disk": {"capacity": "100Gi", "volume": {"persistentVolumeClaim": {"claimName": "kv"}}}}


def kept_apart(key: str) -> dict[str, Any]:
    """Anti-affinity of engines by a label of nodes."""
    like = {"matchLabels": {"app.kubernetes.io/component": "engine"}}
    term = {"topologyKey": key, "labelSelector": like}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


APART = kept_apart("kubernetes.io/hostname")


def test_no_disk_no_word() -> None:
    says(verdict(disk_restart, resource()), PASS, "NoDiskTier")


@pytest.mark.parametrize(
    ("backend", "reason"),
    [("Native", "DiskUnbounded"), ("LMCache", "DiskColdAfterRestart"), ("LMCacheMP", "DiskColdAfterRestart")],
)
def test_what_a_restart_leaves(backend: str, reason: str) -> None:
    says(verdict(disk_restart, resource(backend=backend, tiers=DISK)), WARN, reason)


def test_kvtiers_own_is_there_after_a_restart() -> None:
    says(verdict(disk_restart, resource(tiers=FOLDER)), PASS, "Passed", "warm")
    assert "volume" not in verdict(disk_restart, resource(tiers=CLAIM)).message
    says(verdict(disk_restart, resource(tiers=DISK)), PASS, "Passed", "warm", "until its pod goes")


@pytest.mark.parametrize(("mib", "outcome"), [(33, REJECT), (34, REJECT), (35, PASS)])
def test_a_disk_of_one_chunk_for_each_engine(mib: int, outcome: object) -> None:
    # each engine: 16 MiB of a chunk, 412 bytes of its index and extents, and 1 MiB for all else
    one = {"disk": {"capacity": f"{mib}Mi", "volume": {"emptyDir": {}}}}
    result = verdict(disk_behind_memory, resource(tiers=one, engine={"dataParallelSize": 2}))
    assert result.outcome is outcome
    if outcome is REJECT:
        says(result, REJECT, "DiskHoldsNothing", "2 engines", "64 tokens", "16 MiB")


@pytest.mark.parametrize(("mib", "outcome"), [(31, REJECT), (32, PASS)])
def test_a_bound_that_lets_each_engine_write_one_chunk_an_hour(mib: int, outcome: object) -> None:
    bounded = {"disk": DISK["disk"] | {"writesPerHour": f"{mib}Mi"}}
    result = verdict(disk_behind_memory, resource(tiers=bounded, engine={"dataParallelSize": 2}))
    assert result.outcome is outcome
    if outcome is REJECT:
        says(result, REJECT, "DiskNeverWritten", "31 MiB", "2 engines", "16 MiB", "32 MiB", "leave it out")
        assert result.field == "spec.tiers.disk.writesPerHour"


@pytest.mark.parametrize(("length", "outcome"), [(10_240, PASS), (10_241, WARN)])
def test_memory_holds_what_waits_for_the_disk(length: int, outcome: object) -> None:
    # 20 GiB hold 81,920 tokens: 40,960 in each of two engines, of which a quarter may wait
    engine = {"maxModelLen": length, "dataParallelSize": 2}
    result = verdict(disk_behind_memory, resource(cpu="20Gi", tiers=DISK, engine=engine))
    assert result.outcome is outcome
    if outcome is WARN:
        says(result, WARN, "MemorySmallBesideDisk", "10,240 tokens", "10,241", "20.00 GiB")
        assert result.field == "spec.tiers.cpu.capacity"


@pytest.mark.parametrize("check", [disk_behind_memory, disk_folder])
def test_what_is_kvtiers_alone(check: Check) -> None:
    says(verdict(check, resource()), PASS, "NoDiskTier")
    says(verdict(check, resource(backend="Native", cpu="1Gi", tiers=CLAIM, replicas=2)), PASS, "NotAskedFor")


def test_a_claim_is_one_engines() -> None:
    says(verdict(disk_folder, resource(tiers=CLAIM)), PASS, "Passed")
    result = verdict(disk_folder, resource(tiers=CLAIM, replicas=2))
    says(result, REJECT, "FolderShared", "2 replicas", "claim kv", "ephemeral")
    # in a local run each has a folder for it
    says(verdict(disk_folder, resource(tiers=CLAIM, replicas=2), on()), PASS, "Passed")


def test_a_folder_of_the_node_is_one_engines() -> None:
    says(verdict(disk_folder, resource(tiers=FOLDER), on()), PASS, "Passed")
    says(verdict(disk_folder, resource(tiers=FOLDER, replicas=2)), WARN, "OneEngineOfANode", "affinity")
    here = verdict(disk_folder, resource(tiers=FOLDER, replicas=2), on())
    says(here, REJECT, "FolderShared", "2 replicas of this machine")


@pytest.mark.parametrize("tiers", [CLAIM, FOLDER])
def test_no_engine_beside_the_one_that_has_the_folder(tiers: dict[str, Any]) -> None:
    surge = {"rollout": {"strategy": "Surge"}}
    result = verdict(disk_folder, resource(tiers=tiers, engine=surge))
    says(result, REJECT, "FolderShared", "Surge", "InPlace", "emptyDir")
    assert result.field == "spec.engine.rollout.strategy"
    apart = {**surge, "affinity": APART}
    assert verdict(disk_folder, resource(tiers=tiers, engine=apart)).outcome is (
        PASS if tiers is FOLDER else REJECT
    )
    says(verdict(disk_folder, resource(tiers=DISK, engine=surge)), PASS, "Passed")
    says(verdict(disk_folder, resource(tiers=tiers, engine=surge), on()), PASS, "Passed")


@pytest.mark.parametrize("observed", [None, on()])
def test_a_volume_of_its_own_is_each_engines(observed: Observed | None) -> None:
    says(verdict(disk_folder, resource(tiers=DISK, replicas=3), observed), PASS, "Passed")


def test_a_folder_of_the_node() -> None:
    result = verdict(host_path, resource(backend="LMCache", tiers=FOLDER, replicas=2))
    says(result, WARN, "HostPathNotAccounted", "/mnt/nvme0", "100 GiB", "2 replicas")


@pytest.mark.parametrize(("key", "apart"), [("kubernetes.io/hostname", True), ("zone", False)])
def test_engines_that_are_kept_apart_already(key: str, apart: bool) -> None:
    cases: dict[str, Any] = {"tiers": FOLDER, "replicas": 2, "engine": {"affinity": kept_apart(key)}}
    assert verdict(disk_folder, resource(**cases)).outcome is (PASS if apart else WARN)
    said = verdict(host_path, resource(backend="LMCache", **cases)).message
    assert ("keep them apart" in said) != apart


def test_one_replica_shares_with_nobody() -> None:
    result = verdict(host_path, resource(backend="LMCache", tiers=FOLDER))
    says(result, WARN, "HostPathNotAccounted")
    assert "replicas" not in result.message


def test_what_sharing_means_to_kvtier_is_said_once() -> None:
    result = verdict(host_path, resource(tiers=FOLDER, replicas=2))
    says(result, WARN, "HostPathNotAccounted")
    assert "share" not in result.message


def test_other_volumes_are_accounted() -> None:
    says(verdict(host_path, resource(backend="LMCache", tiers=DISK)), PASS, "NoHostPath")


def test_a_disk_of_exactly_that_size() -> None:
    one = resource(backend="LMCache", tiers=DISK)
    says(verdict(machine_disk, one, on(disk_free_bytes=100 * GIB)), PASS, "Passed")


def test_a_disk_one_byte_too_small() -> None:
    one = resource(backend="LMCache", tiers=DISK)
    result = verdict(machine_disk, one, on(disk_free_bytes=100 * GIB - 1))
    says(result, REJECT, "DiskTooSmall", "107,374,182,400 B", "107,374,182,399 B")
    assert result.field == "spec.tiers.disk.capacity"


@pytest.mark.parametrize(("backend", "outcome"), [("KVTier", PASS), ("LMCache", REJECT)])
def test_what_an_earlier_run_left_is_taken_over(backend: str, outcome: object) -> None:
    one = resource(backend=backend, tiers=FOLDER)
    full = on(disk_free_bytes=GIB, disk_own_bytes=99 * GIB)
    result = verdict(machine_disk, one, full)
    assert result.outcome is outcome
    assert ("99 GiB (106,300,440,576 B) of its own" in result.message) is (outcome is PASS)
    short = on(disk_free_bytes=GIB - 1, disk_own_bytes=99 * GIB)
    says(verdict(machine_disk, one, short), REJECT, "DiskTooSmall")


def test_replicas_add_up() -> None:
    one = resource(backend="LMCache", tiers=DISK, replicas=2)
    says(verdict(machine_disk, one, on(disk_free_bytes=150 * GIB)), REJECT, "DiskTooSmall", "200 GiB")


def test_no_machine_to_look_at() -> None:
    says(verdict(machine_disk, resource(backend="LMCache", tiers=DISK)), PASS, "NotLooked")
