"""What a selected pod says of what holds it up."""

from typing import Any

import pytest

from kvtier_connector.payload import INIT_NAME, VOLUME_NAME
from kvtier_operator.planning.base.names import ADDED, ATTACHED
from kvtier_operator.reconcile.facts.selected_pods import SelectedPod, selected_pod

MEMORY = "0/3 nodes are available: 3 Insufficient memory."


def _pod(status: dict[str, Any]) -> SelectedPod:
    metadata = {"namespace": "team", "name": "chat-1", "annotations": {ATTACHED: "chat"}}
    return selected_pod({"metadata": metadata, "spec": {"containers": []}, "status": status})


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (MEMORY, MEMORY),
        ("0/1 nodes are available: 1 Insufficient hugepages-2Mi.",) * 2,
        ("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", ""),
    ],
)
def test_only_what_the_tier_takes_counts_as_its_fault(message: str, told: str) -> None:
    since = "2026-01-01T00:00:00Z"
    condition = {"type": "PodScheduled", "status": "False", "message": message, "lastTransitionTime": since}
    pod = _pod({"conditions": [condition]})
    assert (pod.attached_to, pod.unschedulable) == ("chat", told)
    assert pod.unschedulable_since == (since if told else "")


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ({"waiting": {"reason": "PodInitializing"}}, ""),
        ({"waiting": {"reason": "ErrImagePull", "message": "once"}}, ""),
        ({"waiting": {"reason": "ImagePullBackOff", "message": "no"}}, "ImagePullBackOff: no"),
        ({"terminated": {"exitCode": 1, "message": "no space"}}, "exit code 1: no space"),
        ({"terminated": {"exitCode": 0}}, ""),
    ],
)
def test_a_payload_that_does_not_come_is_told(state: dict[str, Any], told: str) -> None:
    mine = {"name": INIT_NAME, "state": state}
    theirs = {"name": "theirs", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
    assert _pod({"initContainerStatuses": [theirs, mine]}).payload == told


@pytest.mark.parametrize(
    ("source", "message", "told"),
    [
        (
            {"image": {"reference": "r/connector:1"}},
            "pulling r/connector:1",
            "ImagePullBackOff: pulling r/connector:1",
        ),
        ({"image": {"reference": "r/connector:1"}}, "pulling vllm/vllm-openai", ""),
        (None, "", "the API server took its volume out"),
    ],
)
def test_a_payload_that_is_a_volume_and_does_not_come_is_told(
    source: dict[str, Any] | None, message: str, told: str
) -> None:
    waiting = {"reason": "ImagePullBackOff", "message": message}
    pod = selected_pod(
        {
            "metadata": {"namespace": "team", "name": "chat-1", "annotations": {ATTACHED: "chat", ADDED: ""}},
            "spec": {"containers": [], "volumes": [{"name": VOLUME_NAME, **source}] if source else []},
            "status": {"containerStatuses": [{"name": "main", "state": {"waiting": waiting}}]},
        }
    )
    assert pod.payload.startswith(told)
    assert bool(pod.payload) is bool(told)


def test_a_claim_that_is_not_made_counts_where_the_tier_has_one() -> None:
    message = "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    waiting = {"type": "PodScheduled", "status": "False", "message": message}
    pod = {
        "metadata": {"namespace": "team", "name": "chat-1", "annotations": {ATTACHED: "chat"}},
        "spec": {"containers": [], "volumes": [{"name": "kv-disk-0", "ephemeral": {}}]},
        "status": {"conditions": [waiting]},
    }
    assert selected_pod(pod).unschedulable == message
    pod["spec"] = {"containers": [], "volumes": [{"name": "theirs", "ephemeral": {}}]}
    assert selected_pod(pod).unschedulable == ""
