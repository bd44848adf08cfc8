"""What a pod takes of its node's disk, line by line."""

from typing import Any

import pytest
from tests.cases.planning import resource

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.api.quantity import parse_bytes
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.pod.budget import Budget
from kvtier_operator.planning.report.explain import explain

GIB = 1024**3
MIB = 1024**2
WEIGHTS = 65_524_246_528
"""Of Qwen3-32B."""
BESIDE = 68_738 * MIB - WEIGHTS
"""A tenth, to a whole MiB."""
CLAIM = {"volume": {"persistentVolumeClaim": {"claimName": "models"}}}


def budget(*, model: dict[str, Any] | None = None, **spec: Any) -> Budget:  # noqa: ANN401 - as in YAML
    document = resource(**spec).manifest()
    document["spec"]["model"] |= model or {}
    return make_plan(parse_resource(document, "case"), Observed()).budget


def lines(one: Budget) -> dict[str, int]:
    return {line.what: line.bytes for line in one.storage}


def requested(one: Budget) -> int | None:
    found = one.requests.get("ephemeral-storage")
    assert (parse_bytes(found) if found else 0) == sum(lines(one).values())
    return parse_bytes(found) if found else None


def disk(volume: dict[str, Any], capacity: str = "200Gi") -> dict[str, Any]:
    return {"disk": {"capacity": capacity, "volume": volume}}


def test_weights_that_each_pod_downloads() -> None:
    one = budget()
    assert lines(one) == {"model weights": WEIGHTS, "beside the weights": BESIDE, "logs and scratch": GIB}
    assert requested(one) == 69_762 * MIB
    assert "ephemeral-storage" not in one.limits


@pytest.mark.parametrize("name", ["HF_HOME", "HF_HUB_CACHE"])
def test_weights_that_are_downloaded_beside_any_volume(name: str) -> None:
    assert budget(engine={"env": [{"name": name, "value": "/models"}]}).requests == budget().requests


def test_engines_of_a_pod_download_them_once() -> None:
    assert lines(budget(engine={"dataParallelSize": 4})) == lines(budget())


def test_a_small_model_has_a_gib_beside_it() -> None:
    assert lines(budget(model={"weights": "1Gi"}))["beside the weights"] == GIB


@pytest.mark.parametrize(
    "spec",
    [
        {"model": CLAIM},
        {"model": {"volume": {"hostPath": {"path": "/srv"}}}},
        {"model": {"volume": {"ephemeral": {}}}},
        {"model": {"name": "/models/qwen", "weights": "60Gi", "geometry": {"kvBytesPerToken": 1000}}},
        {"model": {"name": "a/b", "geometry": {"kvBytesPerToken": 1000}}},
        {"engine": {"env": [{"name": "HF_HOME", "value": "/dev/shm/models"}]}},  # noqa: S108 - a name
        {"engine": {"env": [{"name": "HF_HUB_CACHE", "value": "/var/lib/kvtier/disk/0/models"}]}},
    ],
    ids=str,
)
def test_weights_that_are_not_downloaded_to_the_nodes_own_disk(spec: dict[str, Any]) -> None:
    one = budget(**spec)
    assert one.storage == ()
    assert requested(one) is None


@pytest.mark.parametrize("backend", ["KVTier", "LMCache"])
def test_a_disk_tier_of_200_gib_asks_for_221(backend: str) -> None:
    one = budget(model=CLAIM, backend=backend, tiers=disk({"emptyDir": {}}))
    assert lines(one) == {
        "disk tier": 200 * GIB,
        "beside the disk tier": 20 * GIB,
        "logs and scratch": GIB,
    }
    assert requested(one) == 221 * GIB


@pytest.mark.parametrize(
    "volume",
    [
        {"hostPath": {"path": "/mnt/nvme0"}},
        {"persistentVolumeClaim": {"claimName": "kv"}},
        {"ephemeral": {}},
    ],
    ids=str,
)
def test_other_volumes_of_the_tier_are_no_disk_of_the_nodes(volume: dict[str, Any]) -> None:
    assert budget(model=CLAIM, tiers=disk(volume)).storage == ()


def test_volumes_of_several_kinds() -> None:
    tiers = {"disk": disk({"emptyDir": {}})["disk"] | {"extraVolumes": [{"hostPath": {"path": "/mnt"}}]}}
    one = budget(model=CLAIM, backend="LMCache", engine={"tensorParallelSize": 2}, tiers=tiers)
    assert lines(one)["disk tier"] == 100 * GIB


@pytest.mark.parametrize("where", ["requests", "limits"])
def test_a_figure_of_its_own_stands_for_all_but_the_tier(where: str) -> None:
    engine = {"resources": {where: {"ephemeral-storage": "90Gi"}}}
    one = budget(tiers=disk({"emptyDir": {}}), engine=engine)
    assert lines(one) == {
        "the engine's own": 90 * GIB,
        "disk tier": 200 * GIB,
        "beside the disk tier": 20 * GIB,
    }
    assert requested(one) == 310 * GIB
    # a request above its limit would have the API server refuse the pod
    limit = one.limits.get("ephemeral-storage")
    assert (parse_bytes(limit) if limit else None) == (310 * GIB if where == "limits" else None)


def test_the_report_has_every_line() -> None:
    text = explain(make_plan(resource(tiers=disk({"emptyDir": {}})), Observed()))
    assert "ephemeral-storage request of the engine: 288.13 GiB" in text
    for figure in (f"{WEIGHTS:,}", f"{BESIDE:,}", f"{200 * GIB:,}", f"{20 * GIB:,}"):
        assert figure in text
