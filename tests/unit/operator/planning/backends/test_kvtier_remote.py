"""The way to the remote tier that backend KVTier is given."""

from typing import Any

import pytest
from tests.unit.operator.planning.backends.planned import extra_config, planned
from tests.unit.operator.planning.objects.built import engine_container, plan_for, pod

from kvtier_connector.config import parse_extra_config

GIB = 1 << 30
URL = "rediss://cache.kv:6379"
STORE: dict[str, Any] = {"capacity": "1Ti", "url": URL}
MAC = {"macKey": {"secretRef": {"name": "store-mac"}}}
SIGNED = MAC | {"credentials": {"secretRef": {"name": "store"}}, "tls": {"caSecretRef": {"name": "store-ca"}}}


def remote(**changes: object) -> dict[str, object]:
    return {"spec.tiers.remote": STORE | changes, "spec.engine.dataParallelSize": 2}


def test_the_connector_is_told_of_the_store() -> None:
    config = parse_extra_config(
        extra_config(planned(remote(writeBytesPerSecond="1G", ttlSeconds=60, **SIGNED)))
    )
    assert (config.remote_url, config.remote_capacity_bytes) == (URL, 1024 * GIB)
    assert config.remote_share == "default/qwen3-32b"
    assert (config.remote_write_bytes_per_s, config.remote_ttl_s) == (500_000_000, 60)
    assert config.remote_credentials_path == "/etc/kvtier/remote/credentials"
    assert config.remote_ca_path == "/etc/kvtier/remote/ca/ca.crt"
    assert config.remote_mac_key_path == "/etc/kvtier/remote/mac/key"


def test_a_share_of_another_name() -> None:
    assert extra_config(planned(remote(shareAs="team-a/qwen3")))["remote_share"] == "team-a/qwen3"


@pytest.mark.parametrize(
    ("source", "is_read"),
    [
        ({}, False),
        ({"source": "pvc://models/qwen"}, False),
        ({"source": "file:///models/qwen"}, True),
        ({"source": "s3://models/qwen", "fetcher": {"image": "registry.example/fetch:1"}}, True),
    ],
)
def test_weights_of_which_pods_have_copies_are_known_by_content(
    source: dict[str, Any], is_read: bool
) -> None:
    changes = {f"spec.model.{name}": value for name, value in source.items()}
    assert extra_config(planned(remote() | changes)).get("remote_weights_read", False) is is_read


@pytest.mark.parametrize(
    ("bandwidth", "each"), [("100M", 2), ("11600M", 4), ("23G", 8), ("46G", 16), ("460G", 16)]
)
def test_connections_that_carry_an_engines_part_of_the_bandwidth(bandwidth: str, each: int) -> None:
    config = parse_extra_config(extra_config(planned(remote(bandwidth=bandwidth))))
    assert config.remote_connections == each


def test_a_connection_carries_less_where_values_have_a_mac() -> None:
    config = parse_extra_config(extra_config(planned(remote(bandwidth="11600M", **MAC))))
    assert config.remote_connections == 8  # 5.8 GB/s: 1.5 GB/s of the wire, then 0.6 s a GiB


def test_secrets_that_somebody_has_to_make_are_listed() -> None:
    [note] = [note for note in plan_for(remote(**SIGNED)).notes if "these Secrets" in note]
    assert "store (password, and username where it is not the default one), store-ca (ca.crt)" in note
    assert not [note for note in plan_for(remote()).notes if "these Secrets" in note]


def test_secrets_are_folders_that_must_be_there() -> None:
    volumes = {volume["name"]: volume.get("secret") for volume in pod(remote(**SIGNED))["volumes"]}
    assert volumes["remote-credentials"] == {"secretName": "store", "optional": False}
    assert volumes["remote-ca"]["items"] == [{"key": "ca.crt", "path": "ca.crt"}]
    assert volumes["remote-mac"] == {
        "secretName": "store-mac",
        "items": [{"key": "key", "path": "key"}],
        "optional": False,
    }
    mounts = {mount["name"]: mount for mount in engine_container(remote(**SIGNED))["volumeMounts"]}
    # without subPath: a folder follows its Secret
    assert mounts["remote-credentials"] == {
        "name": "remote-credentials",
        "mountPath": "/etc/kvtier/remote/credentials",
        "readOnly": True,
    }
    assert {"remote-credentials", "remote-ca", "remote-mac"}.isdisjoint(
        volume["name"] for volume in pod(remote())["volumes"]
    )


def test_clients_of_mooncake_are_in_the_pods_memory() -> None:
    """Two engines of one rank, with three clients each."""
    engine = {"spec.engine.dataParallelSize": 2, "spec.engine.tensorParallelSize": 1}
    redis = {"capacity": "1Ti", "url": "redis://cache.kv:6379", "connections": 3}
    mooncake = redis | {"engine": "Mooncake", "url": "mooncake://master.kv:50051"}
    with_redis, with_mooncake = (
        planned({**engine, "spec.tiers.remote": store}) for store in (redis, mooncake)
    )
    assert with_mooncake.per_rank_overhead_bytes - with_redis.per_rank_overhead_bytes == 3 * 80 * 2**20
    assert parse_extra_config(extra_config(with_mooncake)).remote_url == "mooncake://master.kv:50051"
    assert "3 clients" in with_mooncake.notes[-1]
