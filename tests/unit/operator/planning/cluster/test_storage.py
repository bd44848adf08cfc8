"""What a namespace lacks of the storage that a resource's volumes name."""

from typing import Any

import pytest
from tests.cases.planning import resource

from kvtier_operator.planning.cluster.storage import (
    Namespace,
    StorageClass,
    storage_class_from_object,
    storage_verdicts,
)
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.verdict import CheckResult, Outcome

_FAST, _SLOW = StorageClass("fast", default=False), StorageClass("slow", default=True)
_EPHEMERAL = {"ephemeral": {"storageClassName": "fast"}}
_DEFAULT: dict[str, Any] = {"ephemeral": {}}
_CLAIM = {"persistentVolumeClaim": {"claimName": "cache"}}


def verdicts(namespace: Namespace, outcome: Outcome = Outcome.REJECT, **spec: Any) -> list[CheckResult]:  # noqa: ANN401 - as in YAML
    """Results of one kind, each on one line."""
    results = storage_verdicts(make_plan(resource(**({"replicas": 2} | spec)), Observed()), namespace)
    assert not any("\n" in result.message for result in results)
    return [result for result in results if result.outcome is outcome]


def refusals(namespace: Namespace, volume: dict[str, Any]) -> list[tuple[str, str, str]]:
    results = verdicts(namespace, replicas=1, tiers={"disk": {"capacity": "1Ti", "volume": volume}})
    return [(result.reason, result.field, result.message) for result in results]


def test_a_class_that_is_missing() -> None:
    [(reason, field, message)] = refusals(Namespace(storage_classes=(_SLOW,)), _EPHEMERAL)
    assert reason == "StorageClassMissing"
    assert field == "spec.tiers.disk.volume.ephemeral.storageClassName"
    assert message == (
        "the cluster has no storage class fast, so the engines' pods would wait for their disk: "
        "name one of slow"
    )


def test_no_default_class() -> None:
    [(_, _, message)] = refusals(Namespace(storage_classes=()), _DEFAULT)
    assert "no default storage class" in message
    assert "have one made" in message


@pytest.mark.parametrize(
    ("classes", "volume"),
    [
        ((_FAST,), _EPHEMERAL),
        ((_SLOW,), _DEFAULT),
        (None, _EPHEMERAL),
        (None, _DEFAULT),
        ((), _CLAIM),
        ((), {"emptyDir": {}}),
    ],
)
def test_nothing_is_missing_or_known_to_be(
    classes: tuple[StorageClass, ...] | None, volume: dict[str, Any]
) -> None:
    assert refusals(Namespace(storage_classes=classes), volume) == []


def test_a_claim() -> None:
    [(reason, field, message)] = refusals(Namespace(claims=frozenset()), _CLAIM)
    assert (reason, field) == ("ClaimMissing", "spec.tiers.disk.volume.persistentVolumeClaim.claimName")
    assert "no PersistentVolumeClaim cache" in message
    assert refusals(Namespace(claims=frozenset({"cache"})), _CLAIM) == []
    assert refusals(Namespace(), _CLAIM) == []


@pytest.mark.parametrize(
    ("volume", "field", "lacks"),
    [
        (_CLAIM, "persistentVolumeClaim.claimName", "the namespace has no PersistentVolumeClaim cache"),
        (_EPHEMERAL, "ephemeral.storageClassName", "the cluster has no storage class fast"),
    ],
)
def test_the_volume_of_the_weights(volume: dict[str, Any], field: str, lacks: str) -> None:
    namespace = Namespace(storage_classes=(), claims=frozenset())
    [found] = verdicts(namespace, model_volume=volume)
    assert found.field == f"spec.model.volume.{field}"
    assert f"{lacks}, so the engines' pods would wait for the volume of their weights: " in found.message


def test_the_claim_that_a_model_is_on() -> None:
    source = {"source": "pvc://cache/qwen3"}
    [found] = verdicts(Namespace(storage_classes=(), claims=frozenset()), model_source=source)
    assert (found.reason, found.field) == ("ClaimMissing", "spec.model.source")
    assert (
        "no PersistentVolumeClaim cache, so the engines' pods would wait for the volume of " in found.message
    )
    assert verdicts(Namespace(claims=frozenset({"cache"})), model_source=source) == []


def test_a_further_volume_has_its_own_field() -> None:
    disk = {"capacity": "1Ti", "volume": {"emptyDir": {}}, "extraVolumes": [_EPHEMERAL]}
    [found] = verdicts(Namespace(storage_classes=()), backend="LMCache", tiers={"disk": disk})
    assert found.field == "spec.tiers.disk.extraVolumes[0].ephemeral.storageClassName"


@pytest.mark.parametrize("prefix", ["storageclass.kubernetes.io", "storageclass.beta.kubernetes.io"])
def test_the_default_is_annotated(prefix: str) -> None:
    metadata = {"name": "fast", "annotations": {f"{prefix}/is-default-class": "true"}}
    assert storage_class_from_object({"metadata": metadata}) == StorageClass("fast", default=True)
    assert storage_class_from_object({"metadata": {"name": "fast"}}) == _FAST


def test_what_could_not_be_looked_at_isrefusals() -> None:
    [found] = verdicts(Namespace(unseen=("LimitRanges: forbidden",)), Outcome.WARN)
    assert (found.reason, found.message) == (
        "NamespaceNotSeen",
        "LimitRanges: forbidden; ask with more rights; otherwise kvtier plans without",
    )


@pytest.mark.parametrize(("part", "whose"), [("engine", "the engines'"), ("router", "the picker's")])
def test_a_volume_of_a_template(part: str, whose: str) -> None:
    spec = {"storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}}
    volumes = [
        {"name": "a", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}},
        {"name": "b", "persistentVolumeClaim": {"claimName": "data"}},
    ]
    namespace = Namespace(storage_classes=(_SLOW,), claims=frozenset())
    asked: dict[str, Any] = {part: {"podTemplate": {"spec": {"volumes": volumes}}}}
    found = verdicts(namespace, replicas=1, **asked)
    at = f"spec.{part}.podTemplate.spec.volumes"
    assert [each.field for each in found] == [
        f"{at}[a].ephemeral.volumeClaimTemplate.spec.storageClassName",
        f"{at}[b].persistentVolumeClaim.claimName",
    ]
    assert all(f"so {whose} pods would wait for that volume" in each.message for each in found)
