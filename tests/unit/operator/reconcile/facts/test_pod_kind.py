"""Which pods are alike."""

from typing import Any

import pytest
from tests.cases.attached import IMAGE, attach_plan, vllm_pod

from kvtier_connector.payload import ATTACH_VARIABLE
from kvtier_operator.planning.attach.pod import attach_pod
from kvtier_operator.reconcile.facts.pod_kind import pod_kind


def _owned(kind: str, name: str, **labels: str) -> dict[str, Any]:
    owner = {"kind": kind, "name": name, "uid": "u", "controller": True}
    metadata = {"name": f"{name}-x", "labels": labels, "ownerReferences": [owner]}
    return {**vllm_pod(), "metadata": metadata}


@pytest.mark.parametrize(
    ("pod", "kind"),
    [
        (_owned("ReplicaSet", "chat-6c4b", **{"pod-template-hash": "6c4b"}), "deployment/chat"),
        (_owned("StatefulSet", "chat"), "statefulset/chat"),
        (
            _owned("StatefulSet", "chat-1", **{"leaderworkerset.sigs.k8s.io/name": "chat"}),
            "leaders of leaderworkerset/chat",
        ),
    ],
)
def test_pods_of_an_owner_that_lasts_are_alike(pod: dict[str, Any], kind: str) -> None:
    assert pod_kind(pod) == kind


def test_pods_of_other_owners_are_alike_by_their_containers_with_the_tier_or_without() -> None:
    pod = _owned("RoleSet", "chat-a")
    attached = attach_pod(attach_plan(), pod, IMAGE)
    assert isinstance(attached, dict)
    assert ATTACH_VARIABLE in str(attached)
    assert pod_kind(attached) == pod_kind(pod) == pod_kind(_owned("RoleSet", "chat-b"))
    other = {**vllm_pod(args=["--tensor-parallel-size=2"]), "metadata": pod["metadata"]}
    assert pod_kind(other) != pod_kind(pod)
