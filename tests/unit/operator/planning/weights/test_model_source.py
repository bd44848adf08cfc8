"""Models that do not come from the Hub: their volume, what vLLM is told, and what it costs the node."""

from typing import Any

import pytest
from tests.cases.planning import on, resource

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.planning.objects.bench_job import without_download
from kvtier_operator.planning.objects.engine.containers import engine_container, runs_as_root
from kvtier_operator.planning.objects.engine.deployment import engine_deployment, engine_pod
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.planner import make_plan

MODEL_DIR = "/var/lib/kvtier/model"
FETCHER = {"image": "a/fetch:1"}


def plan(source: str, observed: Observed | None = None, spec: Any = None, **model: Any) -> Plan:  # noqa: ANN401 - as in YAML
    document = resource(**(spec or {})).manifest()
    document["spec"]["model"] |= {"source": source, **model}
    return make_plan(parse_resource(document, "case"), observed or Observed())


def pod(one: Plan) -> dict[str, Any]:
    return engine_pod(one, engine_container(one))


def volume(one: Plan) -> dict[str, Any]:
    """The model's volume, which the engine reads and no Hub's cache is in."""
    container = engine_container(one)
    [mount] = [mount for mount in container["volumeMounts"] if mount["mountPath"] == MODEL_DIR]
    assert mount["readOnly"] is True
    assert "HF_HOME" not in {each["name"] for each in container["env"]}
    [found] = [volume for volume in pod(one)["volumes"] if volume["name"] == mount["name"]]
    return {name: value for name, value in found.items() if name != "name"}


@pytest.mark.parametrize(
    ("source", "expected", "folder"),
    [
        ("pvc://models", {"persistentVolumeClaim": {"claimName": "models", "readOnly": True}}, ""),
        (
            "pvc://my.models/a/..b/c",
            {"persistentVolumeClaim": {"claimName": "my.models", "readOnly": True}},
            "/a/..b/c",
        ),
        (
            "oci://r.example:5000/models/qwen3:1",
            {"image": {"reference": "r.example:5000/models/qwen3:1", "pullPolicy": "IfNotPresent"}},
            "",
        ),
        (
            f"oci://r.example/qwen3@sha256:{'0' * 64}#models/qwen3",
            {
                "image": {
                    "reference": f"r.example/qwen3@sha256:{'0' * 64}",
                    "pullPolicy": "IfNotPresent",
                }
            },
            "/models/qwen3",
        ),
        ("file:///srv/models/qwen3", {"hostPath": {"path": "/srv/models/qwen3", "type": "Directory"}}, ""),
    ],
)
def test_what_kubernetes_mounts(source: str, expected: dict[str, Any], folder: str) -> None:
    one = plan(source)
    assert volume(one) == expected
    assert one.engine.args[:3] == (MODEL_DIR + folder, "--served-model-name", "Qwen/Qwen3-32B")
    # what clients call it is what is planned
    assert one.geometry.weights_bytes == plan_of_the_hub().geometry.weights_bytes
    assert [container["name"] for container in pod(one)["initContainers"]] == ["kvtier-payload", "doctor"]
    assert not runs_as_root(one.resource.spec)


def plan_of_the_hub() -> Plan:
    return make_plan(resource(), Observed())


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"emptyDir": {"sizeLimit": "68738Mi"}}),
        (
            {"volume": {"persistentVolumeClaim": {"claimName": "models"}}},
            {"persistentVolumeClaim": {"claimName": "models"}},
        ),
    ],
    ids=str,
)
def test_what_a_fetcher_brings(given: dict[str, Any], expected: dict[str, Any]) -> None:
    one = plan("s3://bucket/qwen3", fetcher=FETCHER, **given)
    folder = f"{MODEL_DIR}/models--Qwen--Qwen3-32B"
    assert volume(one) == expected
    assert one.engine.args[0] == folder
    *_, fetcher = pod(one)["initContainers"]
    assert fetcher["image"] == "a/fetch:1"
    assert fetcher["args"] == ["$(MODEL_SOURCE)", "$(MODEL_DIR)"]
    assert {each["name"]: each["value"] for each in fetcher["env"]} == {
        "HOME": "/tmp",  # noqa: S108 - the container's own
        "MODEL_SOURCE": "s3://bucket/qwen3",
        "MODEL_DIR": folder,
    }
    # it writes what the engine reads
    assert fetcher["volumeMounts"] == [{"name": "weights", "mountPath": MODEL_DIR}]
    assert fetcher["resources"]["limits"] == {
        "memory": engine_container(one)["resources"]["limits"]["memory"]
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"args": ["cp", "$(MODEL_SOURCE)"]}, (None, ["cp", "$(MODEL_SOURCE)"])),
        ({"command": ["fetch"]}, (["fetch"], None)),
        ({"command": ["sh", "-c"], "args": ["fetch"]}, (["sh", "-c"], ["fetch"])),
    ],
    ids=str,
)
def test_a_fetchers_own_words(given: dict[str, Any], expected: tuple[object, object]) -> None:
    *_, fetcher = pod(plan("gs://b/m", fetcher=FETCHER | given))["initContainers"]
    assert (fetcher.get("command"), fetcher.get("args")) == expected


def test_a_fetchers_variables_are_its_authors() -> None:
    secret = {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s3", "key": "token"}}}
    *_, fetcher = pod(plan("s3://b/m", fetcher=FETCHER | {"env": [{"name": "HOME", "value": "/x"}, secret]}))[
        "initContainers"
    ]
    assert [each["name"] for each in fetcher["env"]] == ["MODEL_SOURCE", "MODEL_DIR", "HOME", "TOKEN"]
    assert secret in fetcher["env"]


def test_a_fetcher_locks_no_memory() -> None:
    spec = {"tiers": {"cpu": {"capacity": "1Gi", "memlock": {"policy": "Require"}}}}
    _, doctor, fetcher = pod(plan("s3://b/m", spec=spec, fetcher=FETCHER))["initContainers"]
    assert doctor["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["IPC_LOCK"]}
    assert fetcher["securityContext"]["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize(
    ("source", "model", "lines"),
    [
        ("s3://b/m", {"fetcher": FETCHER}, {"model weights", "beside the weights", "logs and scratch"}),
        ("oci://r.example/m:1", {}, {"model weights", "logs and scratch"}),
        ("pvc://models", {}, set()),
        ("file:///srv/m", {}, set()),
        (
            "s3://b/m",
            {"fetcher": FETCHER, "volume": {"persistentVolumeClaim": {"claimName": "models"}}},
            set(),
        ),
    ],
)
def test_what_lands_on_the_nodes_disk(source: str, model: dict[str, Any], lines: set[str]) -> None:
    budget = plan(source, **model).budget
    assert {each.what for each in budget.storage} == lines
    assert ("ephemeral-storage" in budget.requests) == bool(lines)


def test_what_is_brought_before_the_start_has_its_time() -> None:
    deadlines = [
        engine_deployment(one)["spec"]["progressDeadlineSeconds"]
        for one in (plan("pvc://m"), plan("oci://r.example/m:1"), plan("s3://b/m", fetcher=FETCHER))
    ]
    mounted, image, fetched = deadlines
    assert image == fetched == mounted + plan("oci://r.example/m:1").budget.fetch_s > mounted


def test_a_bench_brings_no_model() -> None:
    one = without_download(plan("s3://b/m", fetcher=FETCHER))
    assert [container["name"] for container in pod(one)["initContainers"]] == ["kvtier-payload", "doctor"]
    assert not one.budget.storage


@pytest.mark.parametrize(
    ("source", "model", "expected"),
    [
        ("pvc://models/qwen3", {}, "Qwen/Qwen3-32B"),
        ("s3://b/m", {"fetcher": FETCHER}, "Qwen/Qwen3-32B"),
        ("file:///srv/qwen3", {}, "/srv/qwen3"),
    ],
)
def test_a_local_run_takes_what_this_machine_has(source: str, model: dict[str, Any], expected: str) -> None:
    assert plan(source, on(), **model).engine.args[0] == expected
