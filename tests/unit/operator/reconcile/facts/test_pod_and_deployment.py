"""What is read out of Deployments and pods."""

from typing import Any

import pytest

from kvtier_operator.reconcile.cache.pods import not_ready_pod, serving_pod
from kvtier_operator.reconcile.facts.objects import deployment_facts


def _deployment(status: dict[str, Any], generation: int = 2) -> dict[str, Any]:
    return {"metadata": {"generation": generation}, "spec": {"replicas": 2}, "status": status}


def test_a_deployment_is_complete_only_when_its_controller_has_seen_the_spec() -> None:
    done = {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2}
    assert deployment_facts(_deployment(done)).complete
    assert not deployment_facts(_deployment(done | {"observedGeneration": 1})).complete
    assert not deployment_facts(_deployment(done | {"replicas": 3})).complete
    assert not deployment_facts(_deployment({})).complete


def test_a_deployment_whose_pods_cannot_be_made() -> None:
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "quota"}
    facts = deployment_facts(_deployment({"conditions": [failure]}))
    assert (facts.failed_reason, facts.failed_message) == ("FailedCreate", "quota")
    over = deployment_facts(_deployment({"conditions": [failure | {"status": "False"}]}))
    assert over.failed_reason == ""


@pytest.mark.parametrize(
    ("model", "mounts", "lacks"),
    [
        ("Qwen/Qwen3-32B", [], False),
        ("/var/lib/kvtier/model/qwen", [{"name": "model", "mountPath": "/var/lib/kvtier/model"}], False),
        # as an API server without image volumes takes it
        ("/var/lib/kvtier/model/qwen", [{"name": "home", "mountPath": "/var/lib/kvtier/home"}], True),
    ],
)
def test_a_deployment_whose_pods_have_no_model(
    model: str, mounts: list[dict[str, str]], *, lacks: bool
) -> None:
    document = _deployment({})
    engine = {"name": "engine", "args": [model, "--port", "8000"], "volumeMounts": mounts}
    document["spec"]["template"] = {"spec": {"containers": [engine]}}
    assert deployment_facts(document).lacks_model_volume is lacks


def _pod(status: dict[str, Any], **metadata: object) -> dict[str, Any]:
    return {"metadata": {"name": "pod", **metadata}, "spec": {"nodeName": "node"}, "status": status}


def _container(name: str = "engine", **more: object) -> dict[str, Any]:
    return {"name": name, "ready": False, "restartCount": 2, **more}


_CRASH = {"terminated": {"exitCode": 1, "reason": "Error", "message": "CUDA out of memory"}}
_BACKOFF = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
_TROUBLES = [
    (
        {
            "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
            ]
        },
        "Unschedulable",
        "0/1 nodes",
    ),
    (
        {
            "containerStatuses": [
                _container(state={"waiting": {"reason": "ErrImagePull", "message": "denied"}})
            ]
        },
        "ErrImagePull",
        "container engine: denied",
    ),
    (
        {
            "containerStatuses": [
                _container(
                    state={
                        "waiting": {"reason": "CreateContainerConfigError", "message": 'secret "t" not found'}
                    }
                )
            ]
        },
        "CreateContainerConfigError",
        'secret "t" not found',
    ),
    (
        {"containerStatuses": [_container(state=_BACKOFF, lastState=_CRASH)]},
        "ContainerCrashed",
        "CUDA out of memory",
    ),
    (
        {"containerStatuses": [_container(state={"terminated": {"exitCode": 137, "reason": "OOMKilled"}})]},
        "OOMKilled",
        "exit code 137, 2 restarts",
    ),
    (
        {"initContainerStatuses": [_container("doctor", state=_BACKOFF, lastState=_CRASH)]},
        "DoctorFailed",
        "CUDA",
    ),
    ({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}, "Evicted", "low on memory"),
    ({"containerStatuses": [_container(state={"waiting": {"reason": "ContainerCreating"}})]}, "", ""),
    ({}, "", ""),
]


@pytest.mark.parametrize(("status", "reason", "words"), _TROUBLES)
def test_what_keeps_a_pod(status: dict[str, Any], reason: str, words: str) -> None:
    trouble = not_ready_pod(_pod(status))
    assert trouble
    assert trouble.reason == reason
    assert words in trouble.message
    assert "\n" not in trouble.message


def test_the_doctor_speaks_first() -> None:
    status = {
        "initContainerStatuses": [_container("doctor", state=_CRASH)],
        "containerStatuses": [_container(state={"waiting": {"reason": "ErrImagePull", "message": "denied"}})],
    }
    trouble = not_ready_pod(_pod(status))
    assert trouble
    assert trouble.reason == "DoctorFailed"


def test_a_ready_pod_is_no_trouble_and_one_that_goes_holds_its_room() -> None:
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    assert not_ready_pod(_pod(ready)) is None
    going = not_ready_pod(_pod(ready, deletionTimestamp="now"))
    assert going
    assert (going.reason, going.terminating) == ("", True)


@pytest.mark.parametrize(
    "name",
    [
        "../../../../../../api/v1/configmaps?watch=true",
        "..",
        "%2e%2e",
        "a/b",
        "a?watch=true",
        "a#b",
        "A",
        "a..b",
        "a\n",
        "a" * 254,
        "",
    ],
)
def test_a_pod_whose_owner_has_no_name_of_an_object_is_not_asked(name: str) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": "u", "controller": True}
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "podIP": "10.0.0.1"}
    assert serving_pod(_pod(ready, ownerReferences=[owner])) is None
    assert serving_pod(_pod(ready, ownerReferences=[owner | {"name": "qwen.engine-0"}]))
    assert serving_pod(_pod(ready, ownerReferences=[owner | {"name": "a", "uid": "u" * 65}])) is None
