"""What the store of a remote tier has to be, by hand."""

import pytest
from tests.cases.planning import resource

from kvtier_operator.planning.kv_cache.cost import resolve_geometry
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.tiers.store_demand import StoreDemand, client_millicores, store_demand

MIB, GIB = 1 << 20, 1 << 30


def demand(url: str = "redis://cache:6379", engine: str = "Redis", **fields: object) -> StoreDemand:
    one = resource(
        replicas=3,
        engine={"tensorParallelSize": 2, "dataParallelSize": 2},
        tiers={"remote": {"capacity": "1Ti", "engine": engine, "url": url, "bandwidth": "4Gi"} | fields},
    )
    remote = one.spec.tiers.remote
    assert remote is not None
    return store_demand(one.spec, resolve_geometry(one.spec, Observed()), remote)


def test_what_three_pods_of_two_engines_ask_for() -> None:
    """4 GiB/s a pod are 2.1 GB/s an engine, which two connections carry."""
    wanted = demand()
    assert (wanted.clients, wanted.buffer_bytes) == (3 * 2 * 2, 12 * 2 * 4 * MIB)
    assert (wanted.client_cores, wanted.server_cores) == pytest.approx((4 * 0.3, 3 * 4 * 0.25))
    assert wanted.shards == 7  # 12.9 GB/s


def test_tls_costs_cores() -> None:
    assert demand("rediss://cache:6379").client_cores == pytest.approx(4 * 0.3 * 3.5)


def test_mooncake_costs_more_of_both_sides() -> None:
    """2.1 GB/s an engine are three of its connections."""
    wanted = demand("mooncake://master:50051", "Mooncake")
    assert wanted.clients == 3 * 2 * 3
    assert (wanted.client_cores, wanted.server_cores) == pytest.approx((4 * 1.4, 3 * 4 * 0.5))


def requested(backend: str = "KVTier", **tier: object) -> int:
    one = resource(
        engine={"tensorParallelSize": 2},
        tiers={"remote": {"capacity": "1Ti", "url": "redis://cache:6379", **tier}},
        backend=backend,
    )
    return client_millicores(one.spec, resolve_geometry(one.spec, Observed()))


def test_a_request_is_for_what_is_read_while_as_much_is_computed() -> None:
    """3.2 GB/s are what a Qwen3-32B on two GPUs computes: 3.0 GiB x 0.3 s."""
    assert requested() == requested(bandwidth="46G") == 900
    assert requested(bandwidth="1Gi") == 300
    assert requested(url="rediss://cache:6379", connections=2) == 3000  # 2 x 1.5 GB/s x 0.3 s x 3.5
    assert requested(backend="LMCache") == 0  # what its client takes was not measured


def test_a_mac_costs_cores_and_connections() -> None:
    wanted = demand(macKey={"secretRef": {"name": "key"}})
    assert wanted.client_cores == pytest.approx(4 * (0.3 + 0.6))
    assert wanted.clients == 3 * 2 * 3
