"""Whether pods would wait for the disk tier's claims: storage class, LimitRange, quota."""

from typing import Any

import pytest
from tests.cases.attached import attach_plan

from kvtier_operator.planning.cluster.claim_room import Claims, claims_of, claims_refusal
from kvtier_operator.planning.cluster.growth import NamespaceRules
from kvtier_operator.planning.cluster.storage import StorageClass

CLAIMS = Claims("fast", 1 << 40, pods=2)
CLASSES = [StorageClass("fast", default=False), StorageClass("slow", default=False)]


def test_only_a_disk_by_claim_has_claims() -> None:
    plan = attach_plan(disk={"capacity": "1Ti", "volume": {"ephemeral": {"storageClassName": "fast"}}})
    assert claims_of(plan.disk, plan.disk_bytes, 0) == Claims("fast", plan.disk_bytes, pods=1)
    on_the_node = attach_plan(disk={"capacity": "1Ti", "volume": {"emptyDir": {}}})
    assert claims_of(on_the_node.disk, on_the_node.disk_bytes, 2) is None


@pytest.mark.parametrize(
    ("name", "classes", "why"),
    [
        ("fast", None, ""),
        ("fast", CLASSES, ""),
        (
            "gone",
            CLASSES,
            "the cluster has no storage class gone, so pods would wait",
        ),
        (
            None,
            CLASSES,
            "the cluster has no default storage class, so pods would wait",
        ),
        (None, [StorageClass("slow", default=True)], ""),
        ("", CLASSES, ""),
    ],
)
def test_a_storage_class_has_to_be_there(name: str | None, classes: Any, why: str) -> None:  # noqa: ANN401 - or None
    refusal = claims_refusal(Claims(name, 1, 1), NamespaceRules(), classes)
    assert (refusal is None) == (not why)
    assert refusal is None or refusal.message.startswith(why)


@pytest.mark.parametrize(
    ("bound", "fits"),
    [
        ({"max": {"storage": "1Ti"}}, True),
        ({"max": {"storage": "1023Gi"}}, False),
        ({"min": {"storage": "2Ti"}}, False),
    ],
)
def test_a_limit_range_bounds_each_claim(bound: dict[str, Any], *, fits: bool) -> None:
    limits = [{"type": "PersistentVolumeClaim", **bound}]
    rules = NamespaceRules(limit_ranges=[{"metadata": {"name": "team"}, "spec": {"limits": limits}}])
    refusal = claims_refusal(CLAIMS, rules, CLASSES)
    assert (refusal is None) == fits


@pytest.mark.parametrize(
    ("counted", "hard", "left"),
    [
        (
            "requests.storage",
            "3Ti",
            "1 TiB of requests.storage left, and the disk tier takes 2 TiB for 2 pods",
        ),
        (
            "persistentvolumeclaims",
            "3",
            "1 of persistentvolumeclaims left, and the disk tier takes 2 for 2 pods",
        ),
        ("fast.storageclass.storage.k8s.io/requests.storage", "3Ti", "1 TiB of fast.storageclass"),
        ("slow.storageclass.storage.k8s.io/requests.storage", "3Ti", ""),
    ],
)
def test_a_quota_counts_all_claims(counted: str, hard: str, left: str) -> None:
    used = "2Ti" if hard.endswith("Ti") else "2"
    status = {"hard": {counted: hard}, "used": {counted: used}}
    rules = NamespaceRules(quotas=[{"metadata": {"name": "team"}, "spec": {}, "status": status}])
    refusal = claims_refusal(CLAIMS, rules, CLASSES)
    assert (refusal is None) == (not left)
    assert refusal is None or refusal.message.startswith(f"ResourceQuota team has {left}")
