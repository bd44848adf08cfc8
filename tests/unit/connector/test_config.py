from dataclasses import replace

import pytest

from kvtier_connector.config import GIB, MIB, ConnectorConfig, Policy, kv_transfer_config, parse_extra_config
from kvtier_connector.errors import SettingError

FULL = ConnectorConfig(
    cpu_capacity_bytes=3 * GIB,
    hugepages=Policy.REQUIRE,
    hugepage_bytes=GIB,
    memlock=Policy.NEVER,
    blocks_per_chunk=4,
    offload_prompt_only=False,
    self_describing_kv_events=True,
    control_path="/run/kvtier/control",
)


@pytest.mark.parametrize("config", [FULL, ConnectorConfig(cpu_capacity_bytes=1)])
def test_what_is_rendered_parses_to_the_same(config: ConnectorConfig) -> None:
    assert parse_extra_config(kv_transfer_config(config)["kv_connector_extra_config"]) == config


def test_rendered_json_names_the_connector_and_recomputes() -> None:
    rendered = kv_transfer_config(ConnectorConfig(cpu_capacity_bytes=5))
    assert rendered == {
        "kv_connector": "KVTierConnector",
        "kv_connector_module_path": "kvtier_connector.vllm.connector",
        "kv_role": "kv_both",
        "kv_load_failure_policy": "recompute",
        "kv_connector_extra_config": {
            "spec_name": "KVTierOffloadingSpec",
            "spec_module_path": "kvtier_connector.vllm.spec",
            "cpu_capacity_bytes": 5,
        },
    }


@pytest.mark.parametrize(
    ("change", "setting"),
    [
        ({"cpu_bytes_to_use": 5}, "cpu_bytes_to_use"),
        ({"cpu_capacity_bytes": 0}, "cpu_capacity_bytes"),
        ({"cpu_capacity_bytes": -1}, "cpu_capacity_bytes"),
        ({"cpu_capacity_bytes": "5Gi"}, "cpu_capacity_bytes"),
        ({"cpu_capacity_bytes": True}, "cpu_capacity_bytes"),
        ({"cpu_capacity_bytes": 1.5}, "cpu_capacity_bytes"),
        ({"hugepages": "require"}, "hugepages"),
        ({"memlock": None}, "memlock"),
        ({"memlock": []}, "memlock"),
        ({"hugepage_bytes": 4096}, "hugepage_bytes"),
        ({"blocks_per_chunk": 0}, "blocks_per_chunk"),
        ({"offload_prompt_only": "false"}, "offload_prompt_only"),
        ({"control_path": "control"}, "control_path"),
        ({"control_path": None}, "control_path"),
        ({"warm_start_s": -0.1}, "warm_start_s"),
        ({"warm_start_s": True}, "warm_start_s"),
        ({"warm_start_s": float("inf")}, "warm_start_s"),
        ({"warm_start_s": float("nan")}, "warm_start_s"),
        ({"warm_start_s": "30"}, "warm_start_s"),
        ({"spec_name": "CPUOffloadingSpec"}, "spec_name"),
        ({"spec_module_path": None}, "spec_module_path"),
    ],
)
def test_a_bad_setting_is_one_line_that_names_it(change: dict[str, object], setting: str) -> None:
    extra = kv_transfer_config(FULL)["kv_connector_extra_config"] | change
    with pytest.raises(SettingError) as caught:
        parse_extra_config(extra)
    assert str(caught.value).startswith(f"kv_connector_extra_config.{setting}: ")
    assert "\n" not in str(caught.value)


def test_capacity_has_no_default() -> None:
    extra = kv_transfer_config(FULL)["kv_connector_extra_config"]
    del extra["cpu_capacity_bytes"]
    with pytest.raises(SettingError, match="cpu_capacity_bytes: missing"):
        parse_extra_config(extra)


def test_policies_given_as_text_become_policies() -> None:
    extra = kv_transfer_config(FULL)["kv_connector_extra_config"] | {"hugepages": "Never"}
    assert parse_extra_config(extra) == replace(FULL, hugepages=Policy.NEVER)


ON_DISK = replace(FULL, disk_path="/var/lib/kvtier", disk_capacity_bytes=GIB, disk_direct_io=False)


def test_a_disk_tier_travels_too() -> None:
    assert parse_extra_config(kv_transfer_config(ON_DISK)["kv_connector_extra_config"]) == ON_DISK


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"disk_path": "cache"}, "disk_path: got 'cache', must be the absolute path of a folder"),
        ({"disk_path": 5}, "disk_path: got 5, must be the absolute path"),
        ({"disk_path": ""}, "disk_path: got '', must be given too"),
        ({"disk_capacity_bytes": 0}, "disk_capacity_bytes: got 0, must be given too"),
        ({"disk_capacity_bytes": -1}, "disk_capacity_bytes: got -1, must be a whole number"),
        ({"disk_capacity_bytes": "1Ti"}, "disk_capacity_bytes: got '1Ti', must be a whole number"),
        ({"disk_write_bytes_per_hour": -1}, "disk_write_bytes_per_hour: got -1"),
        ({"disk_direct_io": "yes"}, "disk_direct_io: got 'yes', must be true or false"),
        ({"disk_timeout_s": 0}, "disk_timeout_s: got 0, must be seconds, more than 0"),
        ({"disk_timeout_s": True}, "disk_timeout_s: got True"),
        ({"disk_timeout_s": float("inf")}, "disk_timeout_s: got inf"),
    ],
)
def test_a_bad_disk_setting_is_one_line_that_names_it(change: dict[str, object], message: str) -> None:
    extra = kv_transfer_config(ON_DISK)["kv_connector_extra_config"] | change
    with pytest.raises(SettingError) as caught:
        parse_extra_config(extra)
    assert str(caught.value).startswith(f"kv_connector_extra_config.{message}")


IN_A_STORE = replace(
    FULL,
    remote_url="valkeys://a:6379,b:6379",
    remote_share="models/qwen3",
    remote_capacity_bytes=GIB,
    remote_credentials_path="/etc/kvtier/remote/credentials",
    remote_ca_path="/etc/kvtier/remote/ca/ca.crt",
    remote_mac_key_path="/etc/kvtier/remote/mac/key",
    remote_connections=16,
    remote_write_bytes_per_s=MIB,
    remote_ttl_s=60,
    remote_timeout_s=1,
    remote_break_even=False,
)


def test_a_remote_tier_travels_too() -> None:
    assert parse_extra_config(kv_transfer_config(IN_A_STORE)["kv_connector_extra_config"]) == IN_A_STORE


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"remote_url": ""}, "remote_url: got '', must be given too"),
        ({"remote_capacity_bytes": 0}, "remote_capacity_bytes: got 0, must be given too"),
        ({"remote_share": ""}, "remote_share: got '', must be given too"),
        ({"remote_url": 5}, "remote_url: got 5, must be text"),
        ({"remote_url": "redis://"}, "remote_url: must be SCHEME://HOST:PORT"),
        ({"remote_url": "s3://bucket"}, "remote_url: must be SCHEME://HOST:PORT"),
        ({"remote_connections": 1}, "remote_connections: got 1, must be a whole number, 2 to 16"),
        ({"remote_connections": 2.0}, "remote_connections: got 2.0, must be a whole number, 2 to 16"),
        ({"remote_ca_path": "ca.crt"}, "remote_ca_path: got 'ca.crt', must be an absolute path"),
        ({"remote_mac_key_path": "key"}, "remote_mac_key_path: got 'key', must be an absolute path"),
        ({"remote_ttl_s": -1}, "remote_ttl_s: got -1, must be a whole number"),
        ({"remote_timeout_s": 0}, "remote_timeout_s: got 0, must be seconds"),
        ({"remote_break_even": 1}, "remote_break_even: got 1, must be true or false"),
    ],
)
def test_a_bad_remote_setting_is_one_line_that_names_it(change: dict[str, object], message: str) -> None:
    extra = kv_transfer_config(IN_A_STORE)["kv_connector_extra_config"] | change
    with pytest.raises(SettingError) as caught:
        parse_extra_config(extra)
    assert str(caught.value).startswith(f"kv_connector_extra_config.{message}")


def test_a_password_in_a_url_is_not_quoted() -> None:
    extra = kv_transfer_config(IN_A_STORE)["kv_connector_extra_config"]
    with pytest.raises(SettingError, match="without user and password") as caught:
        parse_extra_config(extra | {"remote_url": "redis://user:hunter2@cache:6379"})
    assert "hunter2" not in str(caught.value)


TENANTS = {"a": {"guaranteed": 0.2, "most": 0.5}, "b": {"guaranteed": 0.8}, "c": {}}


def test_tenants_and_shares_are_rendered_and_parse_to_the_same() -> None:
    config = replace(FULL, tenants=TENANTS, cpu_retained_share=0, disk_retained_share=1)
    assert parse_extra_config(kv_transfer_config(config)["kv_connector_extra_config"]) == config


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"cpu_retained_share": 1.1}, "cpu_retained_share"),
        ({"disk_retained_share": True}, "disk_retained_share"),
        ({"disk_retained_share": float("nan")}, "disk_retained_share"),
        ({"tenants": ["a"]}, "tenants"),
        ({"tenants": {f"t{number}": {} for number in range(65)}}, "tenants"),
        ({"tenants": {"": {}}}, "tenants"),
        ({"tenants": {"a:b": {}}}, "tenants"),
        ({"tenants": {"other": {}}}, "tenants"),
        ({"tenants": {"a" * 64: {}}}, "tenants"),
        ({"tenants": {"a": 0.5}}, "tenants.a"),
        ({"tenants": {"a": {"least": 0.5}}}, "tenants.a"),
        ({"tenants": {"a": {"most": -0.5}}}, "tenants.a"),
        ({"tenants": {"a": {"guaranteed": 0.5, "most": 0.4}}}, "tenants.a"),
        ({"tenants": {"a": {"guaranteed": 0.6}, "b": {"guaranteed": 0.6}}}, "tenants"),
    ],
)
def test_a_bad_part_is_one_line_that_names_it(change: dict[str, object], named: str) -> None:
    extra = kv_transfer_config(FULL)["kv_connector_extra_config"] | change
    with pytest.raises(SettingError) as caught:
        parse_extra_config(extra)
    assert str(caught.value).startswith(f"kv_connector_extra_config.{named}: ")
    assert "\n" not in str(caught.value)
