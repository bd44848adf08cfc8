"""What is made of the variable, and which engines are left alone."""

import json
from dataclasses import replace

import pytest

from kvtier_connector.attach.decisions import (
    EngineFacts,
    LeftAloneError,
    Reason,
    read_settings,
    require_fit,
    require_release,
    share_of,
)
from kvtier_connector.config import CONNECTOR_NAME, GIB, ConnectorConfig, Policy
from kvtier_connector.payload import ATTACH_VARIABLE

FITTING = EngineFacts(connector="", prefix_caching=True, pipeline_ranks=1, nodes=1)


def test_settings_are_read_and_never_insist() -> None:
    text = json.dumps({"cpu_capacity_bytes": GIB, "hugepages": "Require", "memlock": "Never"})
    assert read_settings(text) == ConnectorConfig(
        cpu_capacity_bytes=GIB, hugepages=Policy.PREFER, memlock=Policy.NEVER, attached=True
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Expecting value"),
        ("[1]", "no JSON object"),
        ('{"cpu_capacity_bytes": 1, "cpu_bytes": 2}', "cpu_bytes: unknown setting; known are "),
        ('{"cpu_capacity_bytes": 1, "attached": false}', "attached: unknown setting; known are "),
        ("{}", "cpu_capacity_bytes: missing; give the CPU tier's bytes"),
        ('{"cpu_capacity_bytes": "1Gi"}', "cpu_capacity_bytes: got '1Gi', must be a whole number, 1 or more"),
    ],
)
def test_what_is_not_understood_is_named(text: str, why: str) -> None:
    with pytest.raises(LeftAloneError) as left:
        read_settings(text)
    assert left.value.outcome.reason is Reason.BAD_SETTINGS
    assert left.value.outcome.why.startswith(f"{ATTACH_VARIABLE}: {why}")


def test_the_pod_s_capacities_are_shared_by_its_engines() -> None:
    pod = ConnectorConfig(cpu_capacity_bytes=9, disk_path="/d", disk_capacity_bytes=5, attached=True)
    assert share_of(pod, 2) == replace(pod, cpu_capacity_bytes=4, disk_capacity_bytes=2)
    bounded = replace(pod, disk_write_bytes_per_hour=9, remote_write_bytes_per_s=1)
    assert share_of(bounded, 2).disk_write_bytes_per_hour == 4
    assert share_of(bounded, 2).remote_write_bytes_per_s == 1, "0 would be no bound"
    with pytest.raises(LeftAloneError, match=r"for 10 data-parallel engines: .*cpu_capacity_bytes: got 0"):
        share_of(pod, 10)


def test_engines_that_fit() -> None:
    require_fit(FITTING)
    require_fit(replace(FITTING, connector=CONNECTOR_NAME, local_engines=8, executor="mp"))


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (replace(FITTING, connector="NixlConnector"), Reason.HAS_CONNECTOR),
        (replace(FITTING, prefix_caching=False), Reason.NO_PREFIX_CACHING),
        (replace(FITTING, prefix_caching=False, keeps_kv=False), Reason.UNSUPPORTED_MODEL),
        (replace(FITTING, pipeline_ranks=2), Reason.PIPELINE_PARALLEL),
        (replace(FITTING, nodes=2), Reason.SEVERAL_NODES),
        (replace(FITTING, executor="ray"), Reason.UNKNOWN_EXECUTOR),
        (replace(FITTING, is_one_of_several=True), Reason.SEVERAL_SERVERS),
    ],
)
def test_engines_that_do_not(facts: EngineFacts, reason: Reason) -> None:
    with pytest.raises(LeftAloneError) as left:
        require_fit(facts)
    assert left.value.outcome.reason is reason
    assert str(left.value.outcome).startswith(f"this engine is left alone ({reason.value}): it")


@pytest.mark.parametrize(
    ("version", "is_known_device", "reason"),
    [("0.31.2", True, Reason.UNKNOWN_VERSION), ("0.33.0", False, Reason.UNKNOWN_DEVICE)],
)
def test_versions_and_devices(version: str, is_known_device: bool, reason: Reason) -> None:
    with pytest.raises(LeftAloneError) as left:
        require_release(version, is_known_device=is_known_device)
    assert left.value.outcome.reason is reason
