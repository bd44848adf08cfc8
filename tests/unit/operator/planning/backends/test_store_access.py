"""What backends that are not kvtier's are told of a shared tier."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.operator.planning.backends.planned import extra_config, planned
from tests.unit.operator.planning.backends.test_lmcache import LMCACHE, from_env, from_file
from tests.unit.operator.planning.backends.test_lmcache_mp import SERVER, option, server

from kvtier_common.tier import Tier
from kvtier_operator.planning.backends.store_access import allocated_bytes
from kvtier_operator.planning.base.tier_plan import BackendPlan

MIB = 1 << 20
NATIVE: dict[str, object] = {"spec.backend": "Native"}
STORE = {"capacity": "1Ti", "credentials": {"secretRef": {"name": "kv"}}}
AMAZON = "s3://kv/engines?region=eu-west-1"
OWN_SERVER = "s3://kv?endpoint=http://minio:9000"


def remote(backend: Mapping[str, object], url: str, **fields: object) -> BackendPlan:
    engine = {"engine": "Mooncake"} if url.startswith("mooncake") else {}
    return planned({**backend, "spec.tiers.remote": STORE | {"url": url} | engine | fields})


def secrets(variables: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, bool]]:
    """Key of the Secret by variable, and whether the container starts without it."""
    references = {each["name"]: each["valueFrom"]["secretKeyRef"] for each in variables}
    assert {each["name"] for each in references.values()} <= {"kv"}
    return {name: (each["key"], each.get("optional", False)) for name, each in references.items()}


@pytest.mark.parametrize("url", ["redis://store:6380", "valkey://store:6380"])
def test_lmcache_has_its_own_client_of_redis_and_the_password_in_no_setting(url: str) -> None:
    plan = remote(LMCACHE, url, connections=3)
    settings = from_env(plan)
    assert settings == from_file(plan)
    assert (settings["remote_url"], settings["remote_serde"]) == ("resp://store:6380", "naive")
    assert settings["extra_config"] == {"save_chunk_meta": False, "resp_num_threads": 3}
    assert secrets(plan.env_from) == {
        "LMCACHE_RESP_USERNAME": ("username", True),
        "LMCACHE_RESP_PASSWORD": ("password", False),
    }


def test_lmcache_keeps_what_its_disk_is_told() -> None:
    disk = {"spec.tiers.disk": {"capacity": "1Ti", "volume": {"emptyDir": {}}}}
    settings = from_env(remote({**LMCACHE, **disk}, "redis://store"))
    assert settings["extra_config"] == {"use_odirect": True, "save_chunk_meta": False}
    assert settings["remote_url"] == "resp://store:6379"


@pytest.mark.parametrize(
    ("url", "host", "region", "plain"),
    [
        (AMAZON, "kv.s3.eu-west-1.amazonaws.com", "eu-west-1", False),
        (OWN_SERVER, "kv.minio:9000", "us-east-1", True),
    ],
)
def test_lmcache_reaches_a_bucket_by_its_own_host_name(
    url: str, host: str, region: str, *, plain: bool
) -> None:
    plan = remote(LMCACHE, url)
    settings, keys = from_env(plan), {"s3_region": region, "disable_tls": plain}
    assert settings == from_file(plan)
    assert settings["remote_url"] == f"s3://{host}"
    assert settings["extra_config"] == {"save_chunk_meta": False} | keys
    adapter = json.loads(option(remote(SERVER, url), "--l2-adapter"))
    assert adapter == {"type": "s3", "s3_endpoint": f"s3://{host}"} | keys
    for variables in (plan.env_from, server(remote(SERVER, url)).env_from):
        assert secrets(variables) == {
            "AWS_ACCESS_KEY_ID": ("username", False),
            "AWS_SECRET_ACCESS_KEY": ("password", False),
        }


def test_each_pod_is_a_client_of_mooncake_by_its_own_address() -> None:
    plan = remote(LMCACHE, "mooncake://master:50051", credentials=None)
    [address, extra] = plan.env_from
    # Kubernetes puts in only what comes before
    assert address == {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    assert extra["name"] == "LMCACHE_EXTRA_CONFIG"
    assert extra["name"] not in plan.env
    own = {"mooncake_local_hostname": "$(POD_IP)"}
    assert json.loads(extra["value"]) == from_file(plan)["extra_config"] | own
    assert plan.env["LMCACHE_REMOTE_URL"] == from_file(plan)["remote_url"] == "mooncakestore://master:50051"


def test_the_server_of_lmcache_has_the_password_and_asks_the_disk_first() -> None:
    disk = {"spec.tiers.disk": {"capacity": "1Ti", "volume": {"emptyDir": {}}}}
    plan = remote({**SERVER, **disk}, "redis://store:6380", connections=3)
    command = server(plan).command
    places = [place for place, word in enumerate(command) if word == "--l2-adapter"]
    adapters = [json.loads(command[place + 1]) for place in places]
    assert [adapter["type"] for adapter in adapters] == ["fs_native", "resp"]
    assert adapters[1] == {"type": "resp", "host": "store", "port": 6380, "num_workers": 3}
    assert set(secrets(server(plan).env_from)) == {"LMCACHE_RESP_USERNAME", "LMCACHE_RESP_PASSWORD"}
    assert plan.env_from == ()


def test_native_keeps_objects_behind_files() -> None:
    disk = {"spec.tiers.disk": {"capacity": "1Ti", "volume": {"emptyDir": {}}}}
    ca = {"caSecretRef": {"name": "authority", "key": "tls.crt"}}
    plan = remote({**NATIVE, **disk}, AMAZON, tls=ca, connections=3, shareAs="chat")
    [files, objects] = extra_config(plan)["secondary_tiers"]
    assert (files["type"], objects["type"], objects["io_threads"]) == ("fs", "obj", 3)
    assert objects["store_config"] == {
        "bucket": "kv",
        "endpoint_override": "https://s3.eu-west-1.amazonaws.com",
        "scheme": "https",
        "region": "eu-west-1",
        "ca_bundle": "/etc/kvtier/remote/ca/tls.crt",
    }
    assert objects["prefix"].startswith("engines/chat/")
    [authority] = plan.secrets
    assert (authority.mount_path, authority.source["secret"]["secretName"]) == (
        "/etc/kvtier/remote/ca",
        "authority",
    )
    assert set(secrets(plan.env_from)) == {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}


@pytest.mark.parametrize(
    "change", [{"spec.model.revision": "v2"}, {"spec.engine.image": "vllm/vllm-openai:v0.32.0"}]
)
def test_native_finds_no_object_of_other_weights_or_another_engine(change: dict[str, object]) -> None:
    first, second = (
        extra_config(remote({**NATIVE, **more}, AMAZON))["secondary_tiers"][0]["prefix"]
        for more in ({}, change)
    )
    assert first != second


def test_without_a_secret_the_pod_s_own_identity_counts() -> None:
    assert remote(NATIVE, AMAZON, credentials=None).env_from == ()


@pytest.mark.parametrize("backend", [LMCACHE, SERVER], ids=["LMCache", "LMCacheMP"])
def test_a_redis_holds_fewer_chunks_of_a_power_of_two(backend: dict[str, object]) -> None:
    token = {"spec.model.geometry": {"kvBytesPerToken": 32 * 1024}}
    chunks = [
        remote({**backend, **token}, url).chunks[Tier.REMOTE].chunks for url in ("redis://store", OWN_SERVER)
    ]
    assert chunks[1] == 2**40 // (8 * MIB)
    assert chunks[0] == pytest.approx(chunks[1] / 1.25, rel=0.01)


@given(value_bytes=st.integers(1024, 2**26))
def test_a_value_takes_a_quarter_more_at_most(value_bytes: int) -> None:
    assert value_bytes < allocated_bytes(value_bytes) <= 1.25 * (value_bytes + 16) + 256
