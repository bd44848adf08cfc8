"""A pod of others with the tiers in it, or why it is left alone."""

import copy
from collections.abc import Mapping
from typing import Any

import pytest
from tests.cases.attached import IMAGE, attach_plan, vllm_pod

from kvtier_operator.api.quantity import parse_bytes
from kvtier_operator.planning.attach.as_owned import as_owned
from kvtier_operator.planning.attach.delivery import Delivery
from kvtier_operator.planning.attach.left_alone import LeftAlone, Reason
from kvtier_operator.planning.attach.plan import AttachPlan
from kvtier_operator.planning.attach.pod import attach_pod

PLAN = attach_plan()
_PAYLOAD = "/var/lib/kvtier/connector"
_VALUE_FROM = {"valueFrom": {"configMapKeyRef": {"name": "paths", "key": "python"}}}


def _attached(pod: Mapping[str, Any], plan: AttachPlan = PLAN) -> dict[str, Any]:
    after = attach_pod(plan, pod, IMAGE)
    assert isinstance(after, dict), after
    return after


def _variables(pod: Mapping[str, Any]) -> dict[str, Any]:
    return {variable["name"]: variable.get("value") for variable in pod["spec"]["containers"][0]["env"]}


def test_a_pod_is_given_payload_variables_and_memory() -> None:
    before = vllm_pod()
    kept = copy.deepcopy(before)
    after = _attached(before)
    assert before == kept
    [init], [engine] = after["spec"]["initContainers"], after["spec"]["containers"]
    assert init["name"] == "kvtier-payload"
    assert init["image"] == IMAGE
    assert init["resources"] == {"requests": {"cpu": "8", "memory": "64Gi"}, "limits": {"memory": "64Gi"}}
    assert after["spec"]["volumes"] == [{"name": "kvtier-payload", "emptyDir": {}}]
    assert engine["volumeMounts"] == [{"name": "kvtier-payload", "mountPath": _PAYLOAD}]
    assert _variables(after) == {
        "KVTIER_ATTACH": PLAN.settings,
        "PYTHONPATH": _PAYLOAD,
        "NUMBA_CACHE_DIR": f"{_PAYLOAD}/numba-cache",
    }
    for kind in ("requests", "limits"):
        assert parse_bytes(engine["resources"][kind]["memory"]) == 64 * 1024**3 + PLAN.memory_bytes
    assert after["metadata"]["annotations"] == {"kvtier.dev/attached": "qwen"}
    assert [engine[field] for field in ("command", "args", "image")] == [
        before["spec"]["containers"][0][field] for field in ("command", "args", "image")
    ]


def test_a_payload_that_is_a_volume_is_read_only_and_has_a_cache_beside_it() -> None:
    before = {**vllm_pod(), "spec": {**vllm_pod()["spec"], "initContainers": []}}
    plan = attach_plan(disk={"capacity": "10Gi", "volume": {"emptyDir": {}}})
    after = attach_pod(plan, before, IMAGE, delivery=Delivery.IMAGE_VOLUME)
    assert isinstance(after, dict)
    spec = after["spec"]
    assert spec["initContainers"] == []
    assert spec["volumes"][:2] == [
        {"name": "kvtier-payload", "image": {"reference": IMAGE}},
        {"name": "kvtier-cache", "emptyDir": {}},
    ]
    assert _variables(after) == {
        "KVTIER_ATTACH": plan.settings,
        "PYTHONPATH": f"{_PAYLOAD}/payload",
        "NUMBA_CACHE_DIR": "/var/lib/kvtier/cache",
    }
    # without an init container to read it from
    owned = as_owned(after)
    assert owned["spec"]["containers"][0]["resources"] == before["spec"]["containers"][0]["resources"]
    assert not owned["spec"]["volumes"]


def test_variables_of_the_pod_s_own_stay() -> None:
    own = [
        {"name": "PYTHONPATH", "value": "/opt/extra"},
        {"name": "NUMBA_CACHE_DIR", "value": "/cache"},
        {"name": "VLLM_PLUGINS", "value": "lora_filesystem_resolver"},
    ]
    variables = _variables(_attached(vllm_pod(env=own)))
    assert variables["PYTHONPATH"] == f"{_PAYLOAD}:/opt/extra"
    assert variables["NUMBA_CACHE_DIR"] == "/cache"
    assert variables["VLLM_PLUGINS"] == "lora_filesystem_resolver,kvtier"


@pytest.mark.parametrize(
    ("resources", "kinds"),
    [
        ({}, set()),
        ({"requests": {"memory": "8Gi"}}, {"requests"}),
        ({"limits": {"memory": "8Gi"}}, {"limits"}),
    ],
)
def test_nothing_is_asked_for_that_was_not(resources: dict[str, Any], kinds: set[str]) -> None:
    after = _attached(vllm_pod(resources=resources))["spec"]
    assert after["containers"][0]["resources"].keys() == kinds
    assert after["initContainers"][0].get("resources", {}) == resources


def test_a_guaranteed_pod_stays_one() -> None:
    amounts = {"cpu": "8", "memory": "64Gi"}
    after = _attached(vllm_pod(resources={"requests": amounts, "limits": amounts}))["spec"]
    for container in (*after["initContainers"], *after["containers"]):
        assert container["resources"]["requests"] == container["resources"]["limits"]


def test_the_only_container_with_a_gpu_is_the_engine_s() -> None:
    pod = vllm_pod()
    sidecar = {"name": "proxy", "image": "envoy"}
    pod["spec"]["containers"].insert(0, sidecar)
    first, second = _attached(pod)["spec"]["containers"]
    assert first == sidecar
    assert second["env"]


def test_a_disk_goes_with_the_pod() -> None:
    plan = attach_plan(disk={"capacity": "10Gi", "volume": {"emptyDir": {}}})
    resources = {"requests": {"ephemeral-storage": "1Gi"}}
    after = _attached(vllm_pod(resources=resources), plan)["spec"]
    assert after["volumes"][1] == {"name": "kv-disk-0", "emptyDir": {"sizeLimit": "11Gi"}}
    assert after["containers"][0]["resources"]["requests"] == {"ephemeral-storage": "12Gi"}


def test_huge_pages_are_beside_limits_alone() -> None:
    plan = attach_plan(cpu="16Gi", cpu_fields={"hugepages": {"policy": "Require"}})
    asked = _attached(vllm_pod(), plan)["spec"]["containers"][0]["resources"]
    assert asked["requests"]["hugepages-2Mi"] == asked["limits"]["hugepages-2Mi"] == "16Gi"
    left = attach_pod(plan, vllm_pod(resources={"requests": {"memory": "64Gi"}}), IMAGE)
    assert isinstance(left, LeftAlone)
    assert left.reason is Reason.NO_LIMITS


def _pod(metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - as in YAML
    pod = vllm_pod()
    return {"metadata": pod["metadata"] | (metadata or {}), "spec": pod["spec"] | spec}


_TWO = [{"name": "main", "image": "vllm"}, {"name": "other", "image": "vllm"}]
_LEFT_ALONE = {
    Reason.ALREADY_ATTACHED: _pod({"annotations": {"kvtier.dev/attached": "other"}}),
    Reason.MIRROR_POD: _pod({"annotations": {"kubernetes.io/config.mirror": "a"}}),
    Reason.QUEUED: _pod({"labels": {"app": "qwen", "kueue.x-k8s.io/queue-name": "gpus"}}),
    Reason.SCHEDULING_GATED: _pod(schedulingGates=[{"name": "quota"}]),
    Reason.WINDOWS: _pod(os={"name": "windows"}),
    Reason.POD_RESOURCES: _pod(resources={"limits": {"memory": "64Gi"}}),
    Reason.CONTAINER_NOT_CLEAR: _pod(containers=_TWO),
    Reason.NAME_TAKEN: _pod(volumes=[{"name": "kvtier-payload", "emptyDir": {}}]),
    Reason.PATH_TAKEN: vllm_pod(volumeMounts=[{"name": "a", "mountPath": f"{_PAYLOAD}/"}]),
    Reason.OWN_SETTINGS: vllm_pod(env=[{"name": "KVTIER_ATTACH", "value": "{}"}]),
    Reason.UNREADABLE_VARIABLE: vllm_pod(env=[{"name": "PYTHONPATH", **_VALUE_FROM}]),
    Reason.NOT_UNDERSTOOD: vllm_pod(resources={"limits": {"memory": "lots"}}),
}


@pytest.mark.parametrize(("reason", "pod"), _LEFT_ALONE.items(), ids=_LEFT_ALONE)
def test_a_pod_is_left_alone(reason: Reason, pod: dict[str, Any]) -> None:
    left = attach_pod(PLAN, pod, IMAGE)
    assert isinstance(left, LeftAlone)
    assert left.reason is reason


def test_a_container_that_is_not_there_is_named_with_those_that_are() -> None:
    left = attach_pod(attach_plan(container="vllm"), vllm_pod(), IMAGE)
    assert left == LeftAlone(Reason.CONTAINER_NOT_FOUND, "it has no container vllm; it has main")


@pytest.mark.parametrize(
    "container",
    [
        {"env": [{"name": [1], "value": "a"}]},
        {"env": [{"name": "PYTHONPATH", "value": {"a": "b"}}]},
        {"resources": [1]},
        {"resources": {"requests": ["a"]}},
    ],
)
def test_what_is_not_written_as_a_container_is_left_alone(container: dict[str, Any]) -> None:
    why = attach_pod(PLAN, vllm_pod(**container), IMAGE)
    assert isinstance(why, LeftAlone)
    assert why.reason == Reason.NOT_UNDERSTOOD


def test_annotations_that_are_a_list_are_left_alone() -> None:
    why = attach_pod(PLAN, {**vllm_pod(), "metadata": {"annotations": ["a"]}}, IMAGE)
    assert isinstance(why, LeftAlone)
    assert why.reason == Reason.NOT_UNDERSTOOD
