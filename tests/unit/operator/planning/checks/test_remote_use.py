"""What a backend's client of a store cannot, one sentence each."""

from typing import Any

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.checks.remote import adapters_in_store, remote_engine
from kvtier_operator.planning.checks.remote_use import remote_use

FIELD = "spec.tiers.remote"
MOONCAKE = {"engine": "Mooncake", "url": "mooncake://master.kv:50051"}


def stored(backend: str, **fields: Any) -> KVCacheTier:  # noqa: ANN401 - of the tier, as in YAML
    return resource(backend=backend, tiers={"remote": {"capacity": "1Ti"} | fields})


def test_of_a_store_that_it_cannot_use_nothing_else_is_said() -> None:
    says(verdict(remote_use, stored("Native", url="redis://store")), PASS, "Passed")


def test_nothing_asked_of_a_store_no_word() -> None:
    says(verdict(remote_use, resource()), PASS, "NoRemoteTier")


@pytest.mark.parametrize("hosts", ["a,a", "a:6379,b,a", "[::1],[::1]:6379"])
def test_a_server_is_named_once(hosts: str) -> None:
    says(
        verdict(remote_use, stored("KVTier", url=f"redis://{hosts}")),
        REJECT,
        "SameServerTwice",
        "name each once",
    )
    says(verdict(remote_use, stored("KVTier", url="redis://a:1,a:2")), PASS, "Passed")


def test_mooncake_is_not_managed() -> None:
    with pytest.raises(InvalidInputError, match=r"managed makes Valkeys.*remove engine, or give the url"):
        stored("KVTier", engine="Mooncake", managed={"memory": "2Ti"})


def test_kvtier_can_all() -> None:
    asked = {
        "macKey": {"secretRef": {"name": "key"}},
        "connections": 4,
        "ttlSeconds": 60,
        "writeBytesPerSecond": "1Gi",
        "shareAs": "chat",
    }
    says(verdict(remote_use, stored("KVTier", url="rediss://a,b", **asked)), PASS, "Passed", "KVTier")


@pytest.mark.parametrize(
    ("backend", "url", "reason"),
    [
        ("LMCache", "redis://store", "RemoteKeyedByName"),
        ("LMCacheMP", "s3://bucket", "RemoteKeyedByName"),
        ("Native", "s3://bucket/prefix", "RemoteUnbounded"),
    ],
)
def test_what_to_know_of_the_store_of_others(backend: str, url: str, reason: str) -> None:
    says(verdict(remote_use, stored(backend, url=url)), WARN, reason)


@pytest.mark.parametrize(
    ("backend", "fields", "field"),
    [
        ("LMCache", {"url": "redis://a,b"}, "url"),
        ("LMCache", {"url": "redis://a", "ttlSeconds": 60}, "ttlSeconds"),
        ("LMCacheMP", {"url": "s3://kv?endpoint=http://10.0.0.1:9000"}, "url"),
        ("LMCache", {"url": "s3://kv?region=eu-1&endpoint=https://[2001:db8::1]:9000"}, "url"),
        ("LMCacheMP", {"url": "redis://a", "writeBytesPerSecond": "1Gi"}, "writeBytesPerSecond"),
        ("LMCacheMP", {"url": "s3://bucket/prefix"}, "url"),
        ("LMCache", {"url": "redis://a", "macKey": {"secretRef": {"name": "key"}}}, "macKey"),
        ("LMCacheMP", {"url": "redis://a", "macKey": {"secretRef": {"name": "key"}}}, "macKey"),
        ("Native", {"url": "s3://bucket", "macKey": {"secretRef": {"name": "key"}}}, "macKey"),
        ("LMCacheMP", {"url": "redis://a", "shareAs": "chat"}, "shareAs"),
        ("LMCache", {"managed": {}}, "managed"),
        ("LMCacheMP", {"managed": {}}, "managed"),
        ("LMCache", MOONCAKE | {"ttlSeconds": 60}, "ttlSeconds"),
        ("Native", {"url": "s3://bucket", "ttlSeconds": 60}, "ttlSeconds"),
    ],
)
def test_a_field_that_the_backend_cannot_keep_is_named(
    backend: str, fields: dict[str, Any], field: str
) -> None:
    result = verdict(remote_use, stored(backend, **fields))
    says(result, REJECT, "RemoteNotPossible", f"backend {backend} ")
    assert result.field == f"{FIELD}.{field}"


@pytest.mark.parametrize("backend", ["KVTier", "LMCache"])
@pytest.mark.parametrize(
    ("fields", "field", "why"),
    [
        ({"credentials": {"secretRef": {"name": "store"}}}, "credentials", "asks nobody who they are"),
        pytest.param({"ttlSeconds": 60}, "ttlSeconds", "lets nothing expire", id="ttl"),
    ],
)
def test_a_field_that_mooncake_cannot_keep_is_named(
    backend: str, fields: dict[str, Any], field: str, why: str
) -> None:
    result = verdict(remote_use, stored(backend, **MOONCAKE, **fields))
    says(result, REJECT, "RemoteNotPossible", why)
    assert result.field == f"{FIELD}.{field}"


def test_kvtier_uses_mooncake() -> None:
    mooncake = stored("KVTier", **MOONCAKE, shareAs="chat", connections=2, writeBytesPerSecond="1Gi")
    says(verdict(remote_use, mooncake), PASS, "Passed", "KVTier")
    says(verdict(remote_engine, mooncake), PASS, "Passed", "mooncake://")


@pytest.mark.parametrize(
    ("backend", "url", "words"),
    [
        ("Native", "redis://store", ("redis://", "KVTier, LMCache or LMCacheMP")),
        ("LMCache", "rediss://store", ("rediss://", "take spec.backend KVTier")),
        ("LMCacheMP", "valkeys://store", ("valkeys://", "take spec.backend KVTier")),
        ("KVTier", "s3://bucket", ("s3://", "Native, LMCache or LMCacheMP")),
    ],
)
def test_a_store_that_the_backend_cannot_use(backend: str, url: str, words: tuple[str, ...]) -> None:
    result = verdict(remote_engine, stored(backend, url=url))
    says(result, REJECT, "NoClientForStore", *words)
    assert result.field == f"{FIELD}.url"


def test_an_adapter_is_found_by_its_name_in_a_bucket() -> None:
    one = resource(
        backend="Native",
        tiers={"remote": {"capacity": "1Ti", "url": "s3://bucket"}},
        engine={"extraArgs": ["--enable-lora"]},
    )
    says(verdict(adapters_in_store, one), WARN, "ReplacedAdaptersFound", "KVTier")
