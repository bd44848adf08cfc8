"""Checks of the disk tier: disk-restart, host-path, machine-disk."""

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import on, resource

from kvtier_operator.planning.checks.disk_restart import disk_restart
from kvtier_operator.planning.checks.host_path import host_path
from kvtier_operator.planning.checks.machine_disk import machine_disk

GIB = 1024**3
DISK = {"disk": {"capacity": "100Gi", "volume": {"emptyDir": {}}}}
FOLDER = {"disk": {"capacity": "100Gi", "volume": {"hostPath": {"path": "/mnt/nvme0"}}}}


def test_no_disk_no_word() -> None:
    says(verdict(disk_restart, resource()), PASS, "NoDiskTier")


@pytest.mark.parametrize(
    ("backend", "reason"),
    [("Native", "DiskUnbounded"), ("LMCache", "DiskColdAfterRestart"), ("LMCacheMP", "DiskColdAfterRestart")],
)
def test_what_a_restart_leaves(backend: str, reason: str) -> None:
    says(verdict(disk_restart, resource(backend=backend, tiers=DISK)), WARN, reason)


def test_a_disk_tier_that_kvtier_leaves_out() -> None:
    with_cpu = resource(backend="KVTier", tiers=DISK)
    says(verdict(disk_restart, with_cpu), WARN, "DiskNotServed", "left out")


def test_nothing_is_left_of_a_disk_tier_alone() -> None:
    alone = resource(backend="KVTier", cpu=None, tiers=DISK)
    says(verdict(disk_restart, alone), REJECT, "DiskNotServed", "add spec.tiers.cpu")


def test_a_folder_of_the_node() -> None:
    result = verdict(host_path, resource(backend="LMCache", tiers=FOLDER, replicas=2))
    says(result, WARN, "HostPathNotAccounted", "/mnt/nvme0", "100 GiB", "2 replicas")


def test_one_replica_shares_with_nobody() -> None:
    result = verdict(host_path, resource(backend="LMCache", tiers=FOLDER))
    says(result, WARN, "HostPathNotAccounted")
    assert "replicas" not in result.message


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


def test_replicas_add_up() -> None:
    one = resource(backend="LMCache", tiers=DISK, replicas=2)
    says(verdict(machine_disk, one, on(disk_free_bytes=150 * GIB)), REJECT, "DiskTooSmall", "200 GiB")


def test_no_machine_to_look_at() -> None:
    says(verdict(machine_disk, resource(backend="LMCache", tiers=DISK)), PASS, "NotLooked")
