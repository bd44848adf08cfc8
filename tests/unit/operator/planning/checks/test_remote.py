"""Checks of the remote tier."""

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.checks.remote import (
    adapters_in_store,
    remote_capacity,
    remote_cores,
    remote_engine,
    remote_is_guarded,
    remote_pays,
    remote_rdma,
)
from kvtier_operator.planning.verdict import Outcome


def test_no_remote_tier_no_word() -> None:
    says(verdict(remote_engine, resource()), PASS, "NoRemoteTier")


@pytest.mark.parametrize("url", ["redis://cache:6379", "valkeys://a:6379,b:6379"])
def test_kvtier_speaks_redis(url: str) -> None:
    tiers = {"remote": {"capacity": "1Ti", "url": url}}
    says(verdict(remote_engine, resource(tiers=tiers)), PASS, "Passed")


def test_a_store_that_no_client_speaks_to() -> None:
    tiers = {"remote": {"capacity": "1Ti", "url": "s3://bucket/kv"}}
    says(verdict(remote_engine, resource(tiers=tiers)), REJECT, "NoClientForStore", "KVTier", "s3://")


STORE = {"capacity": "1Ti", "url": "redis://cache:6379"}


MOONCAKE = {"capacity": "1Ti", "engine": "Mooncake", "url": "mooncake://master:50051"}


@pytest.mark.parametrize(
    ("engine", "outcome", "reason"),
    [
        ({"resources": {"limits": {"nvidia.com/gpu": 1}}}, WARN, "NoRDMADevice"),
        ({"resources": {"limits": {"nvidia.com/gpu": 1, "rdma/hca": 1}}}, PASS, "Passed"),
    ],
)
def test_rdma_takes_an_adapter(engine: dict[str, object], outcome: Outcome, reason: str) -> None:
    env = [{"name": "MOONCAKE_PROTOCOL", "value": "rdma"}]
    tiers = {"remote": MOONCAKE}
    says(verdict(remote_rdma, resource(engine={**engine, "env": env}, tiers=tiers)), outcome, reason)
    says(verdict(remote_rdma, resource(engine=engine, tiers=tiers)), PASS, "Passed", "tcp")
    says(verdict(remote_rdma, resource(engine={**engine, "env": env})), PASS, "NoMooncake")


def test_a_network_that_is_too_slow() -> None:
    """Qwen3-32B on two ranks: 6.1e3 x 2 tokens/s of 262,144 B each."""
    slow = resource(engine={"tensorParallelSize": 2}, tiers={"remote": STORE | {"bandwidth": "2900M"}})
    says(verdict(remote_pays, slow), WARN, "RemoteDoesNotPay", "from 3.2 GB/s", "2.9 GB/s")


def test_a_network_that_is_fast_enough() -> None:
    fast = resource(engine={"tensorParallelSize": 2}, tiers={"remote": STORE | {"bandwidth": "11600M"}})
    says(verdict(remote_pays, fast), PASS, "Pays", "11.6 GB/s 3.6x")


def test_a_pods_network_is_shared_by_its_engines() -> None:
    shared = resource(
        engine={"tensorParallelSize": 2, "dataParallelSize": 4},
        tiers={"remote": STORE | {"bandwidth": "11600M"}},
    )
    says(verdict(remote_pays, shared), WARN, "RemoteDoesNotPay", "4 engines 2.9 GB/s")


@pytest.mark.parametrize("bandwidth", [{}, {"bandwidth": "46G"}])
def test_one_managed_server_is_too_slow_for_this_model(bandwidth: dict[str, str]) -> None:
    """Whatever the network: 2 GB/s of it, and 3.2 are needed."""
    managed = {"capacity": "1Ti", "managed": {}, **bandwidth}
    slow = resource(engine={"tensorParallelSize": 2}, tiers={"remote": managed})
    result = verdict(remote_pays, slow)
    says(result, WARN, "RemoteDoesNotPay", "1 server of managed gives about 2 GB/s", "raise its shards")
    assert result.field == "spec.tiers.remote.managed"
    two = resource(engine={"tensorParallelSize": 2}, tiers={"remote": managed | {"managed": {"shards": 2}}})
    says(verdict(remote_pays, two), PASS, "Pays")


def test_servers_that_all_pods_need_are_told() -> None:
    store = STORE | {"bandwidth": "11600M"}
    fast = resource(replicas=4, engine={"tensorParallelSize": 2}, tiers={"remote": store})
    says(verdict(remote_pays, fast), PASS, "Pays", "24 servers give that to all pods at once")


def test_a_store_without_a_password_is_open() -> None:
    says(
        verdict(remote_is_guarded, resource(tiers={"remote": STORE})), WARN, "RemoteOpen", "read and replace"
    )
    signed = STORE | {"credentials": {"secretRef": {"name": "store"}}}
    says(verdict(remote_is_guarded, resource(tiers={"remote": signed})), PASS, "Passed")
    says(verdict(remote_is_guarded, resource()), PASS, "NoRemoteTier")


def test_usual_networks_where_none_is_given() -> None:
    says(verdict(remote_pays, resource(tiers={"remote": STORE})), PASS, "Pays", "25 GbE", "400 GbE")


def test_who_does_not_know_the_pace_leaves_it_to_the_engines() -> None:
    shape = {"layers": 32, "kvHeads": 8, "headDim": 128}
    unknown = resource("someone/model", geometry=shape, tiers={"remote": STORE})
    says(verdict(remote_pays, unknown), PASS, "PrefillUnknown", "measure")
    says(verdict(remote_pays, resource()), PASS, "NoRemoteTier")


@pytest.mark.parametrize(
    ("capacity", "outcome", "reason"),
    [("4Mi", REJECT, "RemoteHoldsNothing"), ("100Gi", WARN, "RemoteSmall"), ("1Ti", PASS, "Passed")],
)
def test_what_the_store_holds(capacity: str, outcome: Outcome, reason: str) -> None:
    says(
        verdict(remote_capacity, resource(tiers={"remote": STORE | {"capacity": capacity}})), outcome, reason
    )


def test_adapters_are_not_shared() -> None:
    says(verdict(adapters_in_store, resource(tiers={"remote": STORE})), PASS, "Passed")
    lora = resource(engine={"extraArgs": ["--enable-lora"]}, tiers={"remote": STORE})
    says(verdict(adapters_in_store, lora), WARN, "AdaptersNotShared")


@pytest.mark.parametrize(
    ("resources", "outcome", "reason", "word"),
    [
        ({}, PASS, "Passed", "900m of a CPU are requested"),
        ({"requests": {"cpu": "500m"}}, WARN, "RemoteCPULow", "500m is asked for"),
        ({"limits": {"cpu": "800m"}}, WARN, "RemoteCPULow", "alone takes 900m"),
        ({"requests": {"cpu": 1}}, PASS, "Passed", "1 of a CPU asked for"),
    ],
)
def test_cores_of_the_client(resources: dict[str, object], outcome: Outcome, reason: str, word: str) -> None:
    engine = {"tensorParallelSize": 2, "resources": resources}
    says(verdict(remote_cores, resource(engine=engine, tiers={"remote": STORE})), outcome, reason, word)
    says(verdict(remote_cores, resource(engine=engine)), PASS, "NoRemoteTier")
