"""What a selected pod says: its restart command, and what holds it up."""

from typing import Any

import pytest

from kvtier_connector.payload import INIT_NAME
from kvtier_operator.planning.base.names import ATTACHED
from kvtier_operator.reconcile.facts.selected_pods import SelectedPod, restart_command, selected_pod

MEMORY = "0/3 nodes are available: 3 Insufficient memory."

COMPONENT = "app.kubernetes.io/component"
SERVICE = {"app.kubernetes.io/part-of": "llminferenceservice", "app.kubernetes.io/name": "one"}


def _owner(kind: str, name: str) -> dict[str, Any]:
    return {"ownerReferences": [{"kind": kind, "name": name, "uid": "u", "controller": True}]}


def _patch(patch: str) -> str:
    return f"kubectl patch -n team llminferenceservice/one --type merge -p '{patch}'"


@pytest.mark.parametrize(
    ("owned", "command"),
    [
        (
            {**_owner("ReplicaSet", "chat-6c4b"), "labels": {"pod-template-hash": "6c4b"}},
            "kubectl rollout restart -n team deployment/chat",
        ),
        (_owner("StatefulSet", "chat"), "kubectl rollout restart -n team statefulset/chat"),
        (_owner("ReplicaSet", "bare"), "kubectl delete pod -n team chat-1"),
        (_owner("StatefulSet", "$(reboot)"), "kubectl delete pod -n team chat-1"),
        (_owner("StormService", "chat"), "kubectl delete pod -n team chat-1"),
        (
            {
                **_owner("ReplicaSet", "one-kserve-6c4b"),
                "labels": {**SERVICE, COMPONENT: "llminferenceservice-workload", "pod-template-hash": "6c4b"},
            },
            _patch('{"spec":{"annotations":{"kvtier.dev/replaced":"6c4b"}}}'),
        ),
        (
            {
                **_owner("StatefulSet", "one-0"),
                "labels": {**SERVICE, COMPONENT: "llminferenceservice-workload-leader-prefill"},
            },
            _patch('{"spec":{"prefill":{"annotations":{"kvtier.dev/replaced":"one-0"}}}}'),
        ),
        (
            {**_owner("StatefulSet", "chat"), "labels": {"leaderworkerset.sigs.k8s.io/name": "chat"}},
            "kubectl delete pod -n team chat-1",
        ),
        ({}, ""),
    ],
)
def test_who_owns_a_pod_has_it_made_anew(owned: dict[str, Any], command: str) -> None:
    assert restart_command({"namespace": "team", "name": "chat-1", **owned}) == command


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
