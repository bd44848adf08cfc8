"""What the owner of a pod types to have it made anew."""

from typing import Any

import pytest

from kvtier_operator.reconcile.facts.restart import restart_command

COMPONENT = "app.kubernetes.io/component"
SERVICE = {"app.kubernetes.io/part-of": "llminferenceservice", "app.kubernetes.io/name": "one"}
GROUP = {
    "leaderworkerset.sigs.k8s.io/name": "chat",
    "leaderworkerset.sigs.k8s.io/template-revision-hash": "5f9",
}

GROUP_PATCH = '{"spec":{"leaderWorkerTemplate":{"workerTemplate":{"metadata":{"annotations":{"kvtier.dev/replaced":"5f9"}}}}}}'  # noqa: E501
DELETE = "kubectl delete pod -n team chat-1"


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
        (_owner("ReplicaSet", "bare"), DELETE),
        (_owner("StatefulSet", "$(reboot)"), DELETE),
        (_owner("StormService", "chat"), DELETE),
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
            {**_owner("StatefulSet", "chat"), "labels": GROUP},
            f"kubectl patch -n team leaderworkerset/chat --type merge -p '{GROUP_PATCH}'",
        ),
        (
            {**_owner("StatefulSet", "chat"), "labels": {**GROUP, "disaggregatedset.x-k8s.io/name": "chat"}},
            DELETE,
        ),
        (
            {**_owner("ReplicaSet", "chat-6c4b"), "labels": {"rollouts-pod-template-hash": "6c4b"}},
            "kubectl argo rollouts restart -n team chat",
        ),
        (
            _owner("Job", "nightly-29"),
            f"let Job nightly-29 end, as its next run has the tier, or have it make another pod: {DELETE}",
        ),
        ({}, "no controller makes pod chat-1 anew: delete it and apply its manifest again"),
    ],
)
def test_who_owns_a_pod_has_it_made_anew(owned: dict[str, Any], command: str) -> None:
    assert restart_command({"namespace": "team", "name": "chat-1", **owned}) == command
