"""The volume that the weights are downloaded to."""

from typing import Any

import pytest
from tests.cases.planning import resource

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.planning.objects.engine.containers import engine_container, engine_pod_security
from kvtier_operator.planning.objects.engine.deployment import engine_pod
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.planner import make_plan

HF_HOME = "/var/lib/kvtier/huggingface"
UNKNOWN = {"name": "a/b", "geometry": {"kvBytesPerToken": 1000}}


def plan(model: dict[str, Any] | None = None, **spec: Any) -> Plan:  # noqa: ANN401 - as in YAML
    document = resource(**spec).manifest()
    document["spec"]["model"] |= model or {}
    return make_plan(parse_resource(document, "case"), Observed())


def volume(one: Plan) -> dict[str, Any] | None:
    """The pod's volume; a container that mounts it knows of it."""
    container = engine_container(one)
    [found] = [volume for volume in engine_pod(one, container)["volumes"] if volume["name"] == "weights"] or [
        None
    ]
    mounts = [mount for mount in container["volumeMounts"] if mount["name"] == "weights"]
    homes = [each for each in container["env"] if each == {"name": "HF_HOME", "value": HF_HOME}]
    assert mounts == ([{"name": "weights", "mountPath": HF_HOME}] if found else [])
    assert len(homes) == len(mounts)
    return {name: value for name, value in found.items() if name != "name"} if found else None


def claim(storage: str, **more: str) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}, **more}
    return {"ephemeral": {"volumeClaimTemplate": {"spec": spec}}}


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        # 61.02 GiB and a tenth
        ({}, {"emptyDir": {"sizeLimit": "68738Mi"}}),
        ({"volume": {"emptyDir": {}}}, {"emptyDir": {"sizeLimit": "68738Mi"}}),
        ({"weights": "5Gi"}, {"emptyDir": {"sizeLimit": "6Gi"}}),
        (UNKNOWN, {"emptyDir": {}}),
        ({"volume": {"ephemeral": {}}}, claim("68738Mi")),
        ({"volume": {"ephemeral": {"storageClassName": "fast"}}}, claim("68738Mi", storageClassName="fast")),
        (
            {"volume": {"persistentVolumeClaim": {"claimName": "models"}}},
            {"persistentVolumeClaim": {"claimName": "models"}},
        ),
        (
            {"volume": {"hostPath": {"path": "/srv/models"}}},
            {"hostPath": {"path": "/srv/models", "type": "DirectoryOrCreate"}},
        ),
        (UNKNOWN | {"name": "/models/qwen"}, None),
        (UNKNOWN | {"name": "s3://bucket/qwen", "weights": "5Gi"}, None),
        (
            UNKNOWN
            | {"name": f"{HF_HOME}/qwen", "volume": {"persistentVolumeClaim": {"claimName": "models"}}},
            {"persistentVolumeClaim": {"claimName": "models"}},
        ),
    ],
    ids=str,
)
def test_the_volume(model: dict[str, Any], expected: dict[str, Any] | None) -> None:
    assert volume(plan(model)) == expected


@pytest.mark.parametrize("name", ["HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"])
def test_whoever_moves_the_downloads_has_them_there(name: str) -> None:
    one = plan(engine={"env": [{"name": name, "value": "/opt/models"}]})
    assert volume(one) is None
    assert {"name": name, "value": "/opt/models"} in engine_container(one)["env"]


@pytest.mark.parametrize(
    ("kind", "root"),
    [
        ({"hostPath": {"path": "/srv"}}, True),
        ({"persistentVolumeClaim": {"claimName": "models"}}, False),
        ({"ephemeral": {}}, False),
        ({"emptyDir": {}}, False),
    ],
    ids=str,
)
def test_the_engine_can_write_to_it(kind: dict[str, Any], *, root: bool) -> None:
    security = engine_pod_security(plan({"volume": kind}).resource.spec)
    assert (security["runAsUser"] == 0) == root
    assert ("fsGroup" in security) != root
