"""What pods that a resource selects are given: settings, memory, huge pages and a disk."""

import json

from tests.cases.attached import attach_plan

from kvtier_connector.config import ConnectorConfig
from kvtier_operator.api.quantity import parse_bytes

_GIB = 1024**3
_DISK = {"capacity": "1Ti", "volume": {"emptyDir": {}}}


def test_settings_are_the_connector_s_and_name_nothing_of_an_engine() -> None:
    plan = attach_plan(disk=_DISK, remote={"capacity": "2Ti", "url": "redis://valkey:6379"})
    settings = json.loads(plan.settings)
    config = ConnectorConfig(**settings)
    assert (config.cpu_capacity_bytes, config.disk_capacity_bytes) == (100 * _GIB, 1024 * _GIB)
    assert config.disk_path.startswith("/var/lib/kvtier/disk/")
    assert (config.remote_url, config.remote_share) == ("redis://valkey:6379", "default/qwen")
    assert not {"blocks_per_chunk", "spec_name"} & settings.keys()


def test_memory_is_the_tier_with_what_goes_beside_it() -> None:
    plan = attach_plan()
    assert plan.memory[0].bytes == 100 * _GIB
    assert sum(line.bytes for line in plan.memory[1:]) < 2 * _GIB
    assert parse_bytes(plan.status["memory"]) == plan.memory_bytes
    assert set(plan.status) == {"settings", "memory"}


def test_a_model_that_is_named_has_smaller_indexes() -> None:
    assert attach_plan(disk=_DISK, model="Qwen/Qwen3-32B").memory_bytes < attach_plan(disk=_DISK).memory_bytes


def test_required_huge_pages_take_the_place_of_memory() -> None:
    plan = attach_plan(cpu="101Gi", cpu_fields={"hugepages": {"policy": "Require", "pageSize": "1Gi"}})
    assert plan.memory_bytes < 3 * _GIB
    # whole pages for each of 8 ranks
    assert plan.status["hugepages"] == {"hugepages-1Gi": "104Gi"}
    assert json.loads(plan.settings)["cpu_capacity_bytes"] == 104 * _GIB


def test_a_claim_of_the_pod_s_own_is_no_storage_of_its_container() -> None:
    node, claim = attach_plan(disk=_DISK), attach_plan(disk={**_DISK, "volume": {"ephemeral": {}}})
    assert node.node_disk_bytes == node.disk_bytes == claim.disk_bytes > 1024 * _GIB
    assert claim.node_disk_bytes == 0
    assert parse_bytes(claim.status["ephemeralStorage"]) == claim.disk_bytes
