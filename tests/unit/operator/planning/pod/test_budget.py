"""The pod's memory, line by line."""

from typing import Any

import pytest
from tests.cases.planning import plan_sizes, resource

from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.pod.budget import Budget

GIB = 1024**3


def lines(budget: Budget) -> dict[str, int]:
    return {line.what: line.bytes for line in budget.memory}


def test_a_cuda_engine_whose_tier_is_page_locked() -> None:
    _, budget, backend = plan_sizes(resource(engine={"tensorParallelSize": 2}))
    found = lines(budget)
    assert found["vLLM front end"] == GIB
    assert found["engine processes"] == 10 * GIB
    assert found["CPU tier, page-locked"] == 100 * GIB
    assert found["rest of /dev/shm"] == GIB
    assert found["backend's own"] == 2 * backend.per_rank_overhead_bytes
    assert list(found)[-1] == "headroom"


@pytest.mark.parametrize(
    "spec",
    [
        {"tiers": {"cpu": {"capacity": "100Gi", "memlock": {"policy": "Never"}}}},
        {"engine": {"device": "cpu", "blockSize": 32}},
        {"backend": "LMCache"},  # which is not asked, and does not say
    ],
    ids=str,
)
def test_a_tier_of_which_nobody_knows_that_it_is_page_locked_is_not_called_so(spec: dict[str, Any]) -> None:
    _, budget, _ = plan_sizes(resource(**spec))
    assert lines(budget)["CPU tier"] == 100 * GIB


def test_natives_tier_is_in_shared_memory() -> None:
    _, budget, _ = plan_sizes(resource(backend="Native"))
    assert lines(budget)["CPU tier in /dev/shm"] == 100 * GIB
    assert budget.shm_bytes == 101 * GIB
    assert not {"CPU tier", "CPU tier, page-locked"} & lines(budget).keys()


def test_huge_pages_are_not_in_the_memory_limit() -> None:
    pages = {"cpu": {"capacity": "100Gi", "hugepages": {"policy": "Require", "pageSize": "1Gi"}}}
    _, with_pages, _ = plan_sizes(resource(tiers=pages))
    _, without, _ = plan_sizes(resource())
    assert with_pages.limits["hugepages-1Gi"] == with_pages.requests["hugepages-1Gi"] == "100Gi"
    assert sum(lines(without).values()) - sum(lines(with_pages).values()) == 100 * GIB


def test_a_cpu_engine_holds_weights_and_cache_in_memory() -> None:
    engine = {"device": "cpu", "blockSize": 32, "kvCacheMemory": "6Gi", "tensorParallelSize": 2}
    _, budget, _ = plan_sizes(resource("Qwen/Qwen3-0.6B", engine=engine))
    found = lines(budget)
    assert found["model weights"] == 2 * 596_049_920
    assert found["device KV cache"] == 12 * GIB
    assert found["engine processes"] == 4 * GIB
    assert "nvidia.com/gpu" not in budget.limits


@pytest.mark.parametrize("given", [{}, {"kvCacheMemory": "4Gi"}], ids=str)
def test_a_device_cache_says_whether_anyone_chose_it(given: dict[str, Any]) -> None:
    _, budget, _ = plan_sizes(resource("Qwen/Qwen3-0.6B", engine={"device": "cpu"} | given))
    [line] = [line for line in budget.memory if line.what == "device KV cache"]
    assert ("its default" in line.why) != bool(given)


def test_a_working_set_given_by_hand_replaces_the_estimate() -> None:
    _, budget, _ = plan_sizes(resource(engine={"resources": {"requests": {"memory": "30Gi", "cpu": "8"}}}))
    assert lines(budget)["engine working set"] == 30 * GIB
    assert "engine processes" not in lines(budget)
    assert budget.requests["cpu"] == "8"


def test_shared_memory_given_by_hand() -> None:
    _, budget, _ = plan_sizes(resource(backend="Native", cpu="10Gi", engine={"shmSize": "16Gi"}))
    assert budget.shm_bytes == 16 * GIB
    assert lines(budget)["CPU tier in /dev/shm"] == 10 * GIB
    assert lines(budget)["rest of /dev/shm"] == 6 * GIB


@pytest.mark.parametrize(
    ("engine", "gpus"),
    [
        ({"tensorParallelSize": 2, "dataParallelSize": 4}, {"nvidia.com/gpu": "8"}),
        ({"resources": {"limits": {"nvidia.com/gpu": 4}}}, {"nvidia.com/gpu": "4"}),
        ({"resources": {"limits": {"amd.com/gpu": 4}}}, {"amd.com/gpu": "4"}),
        ({"resources": {"limits": {"nvidia.com/mig-3g.40gb": 1}}}, {"nvidia.com/mig-3g.40gb": "1"}),
        ({"resources": {"limits": {"habana.ai/gaudi": 8}}}, {"habana.ai/gaudi": "8"}),
        ({"resources": {"requests": {"habana.ai/gaudi": 8}}}, {"habana.ai/gaudi": "8"}),
        ({"resources": {"limits": {"example.com/default": 1}}}, {"example.com/default": "1"}),
        ({"resources": {"limits": {"nvidia.com/gpu": 0}}}, {"nvidia.com/gpu": "0"}),
        (
            {"resources": {"limits": {"habana.ai/gaudi": 1, "vpc.amazonaws.com/efa": 4}}},
            {"habana.ai/gaudi": "1", "vpc.amazonaws.com/efa": "4"},
        ),
        # a network adapter computes nothing
        (
            {"resources": {"limits": {"rdma/hca_shared_devices_a": 1}}},
            {"rdma/hca_shared_devices_a": "1", "nvidia.com/gpu": "1"},
        ),
        ({"resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "h100"}]}, {}),
        ({"device": "cpu", "blockSize": 32}, {}),
    ],
)
def test_devices(engine: dict[str, Any], gpus: dict[str, str]) -> None:
    _, budget, _ = plan_sizes(resource(engine=engine))
    for resources in (budget.requests, budget.limits):
        assert {name: value for name, value in resources.items() if "/" in name} == gpus


def test_a_start_waits_for_weights_and_memory() -> None:
    # 300 s, 65,524,246,528 B at 200 MiB/s = 313 s, 100 GiB x 0.56 s = 56 s
    _, budget, _ = plan_sizes(resource())
    assert budget.startup_s == 300 + 313 + 56


def test_a_start_waits_for_the_index_of_a_disk() -> None:
    # 16 TiB in chunks of 16 MiB: 1,048,550 of them, 200,000 a second; and 10 s to be warm again
    disk = {"disk": {"capacity": "16Ti", "volume": {"emptyDir": {}}}}
    _, budget, _ = plan_sizes(resource(tiers=disk))
    assert budget.startup_s == 300 + 313 + 56 + 6 + 10
    # engines read theirs at the same time, and others keep none
    _, budget, _ = plan_sizes(resource(tiers=disk, engine={"dataParallelSize": 2}))
    assert budget.startup_s == 300 + 313 + 56 + 3 + 10
    _, budget, _ = plan_sizes(resource(tiers=disk, backend="LMCache"))
    assert budget.startup_s == 300 + 313 + 56


def test_a_start_with_unknown_weights_waits_longer() -> None:
    _, budget, _ = plan_sizes(resource("deepseek-ai/DeepSeek-V3", engine={"tensorParallelSize": 8}))
    assert budget.startup_s == 300 + 900 + 56


def test_weights_seen_on_disk_count() -> None:
    config = {"num_hidden_layers": 8, "num_attention_heads": 12, "num_key_value_heads": 2, "hidden_size": 768}
    observed = Observed(model_config=config, weights_bytes=146_000_000)
    _, budget, _ = plan_sizes(resource("there/model", engine={"device": "cpu", "blockSize": 32}), observed)
    assert lines(budget)["model weights"] == 146_000_000


def test_cores_are_requested_unless_the_resource_has_some() -> None:
    remote: dict[str, object] = {"capacity": "1Ti", "url": "redis://cache:6379"}
    tiers = {"cpu": {"capacity": "100Gi"}, "remote": remote}

    def cpu(tiers: dict[str, Any] | None = None, **engine: object) -> tuple[str | None, str | None]:
        _, budget, _ = plan_sizes(resource(engine={"tensorParallelSize": 2, **engine}, tiers=tiers or {}))
        return budget.requests.get("cpu"), budget.limits.get("cpu")

    assert cpu() == ("4", None)
    # two front ends and two engines of two ranks
    assert cpu(dataParallelSize=2, extraArgs=["--api-server-count", "2"]) == ("8", None)
    assert cpu(device="cpu") == (None, None)
    assert cpu(resources={"requests": {"cpu": "500m"}}) == ("500m", None)
    assert cpu(resources={"limits": {"cpu": "8"}}) == (None, "8")  # which is a request of 8
    assert cpu(tiers) == ("4900m", None)
    remote |= {"url": "rediss://cache:6379", "connections": 2}
    assert cpu(tiers) == ("7", None)  # as the API server writes 7000m
