"""What is done for an autoscaler before a Deployment is applied, and what a server's refusal leaves."""

import asyncio
from typing import Any

import orjson
from tests.unit.operator.reconcile.objects import UID, live_manifest, plan_objects

from kvtier_common.kubernetes.answers import ForbiddenError
from kvtier_common.kubernetes.client import Request
from kvtier_operator.planning.base.names import Component
from kvtier_operator.reconcile.api_server import BY_NAME, Ref
from kvtier_operator.reconcile.apply.apply import Applier, ApplyFailure, ApplyResult, OwnershipLookup
from kvtier_operator.reconcile.apply.diff import Diff
from kvtier_operator.reconcile.apply.writer import Writer
from kvtier_operator.reconcile.cache.live_objects import LiveObjectCache

SCALED: dict[str, object] = {"spec.autoscaling": {"minReplicas": 2, "maxReplicas": 8}}
ENGINE = Ref("Deployment", "default", "qwen3-32b-engine")
HPA = Ref("HorizontalPodAutoscaler", "default", "qwen3-32b-engine")


class _Api:
    """Takes what is applied and gives it back, but deletes nothing."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def request(self, request: Request) -> bytes:
        if request.method == "DELETE":
            raise ForbiddenError("no rights")
        self.requests.append(request)
        body: dict[str, Any] = orjson.loads(orjson.dumps(request.body))
        body["metadata"] |= {"uid": "u", "resourceVersion": "11"}
        return orjson.dumps(body)


class _Unowned(OwnershipLookup):
    async def owner(self, ref: object) -> None:
        del ref


def _apply(api: _Api, cache: LiveObjectCache, diff: Diff) -> ApplyResult:
    applier = Applier(Writer(api), cache, _Unowned(api))  # type: ignore[arg-type]
    return asyncio.run(applier.apply(diff, UID))


def _cached(changes: dict[str, object], ref: Ref) -> LiveObjectCache:
    """A cache that has seen one of a resource's objects."""
    [wanted] = [child for child in plan_objects(changes)[1] if child.ref == ref]
    document = live_manifest(wanted)
    fields: dict[str, object] = {"f:spec": {"f:replicas": {}}}
    document["metadata"]["managedFields"] = [
        {"operation": "Update", "fieldsV1": fields},
        {"manager": "kvtier", "operation": "Apply", "fieldsV1": fields},
    ]
    cache = LiveObjectCache(lambda *_: None)
    cache.upsert(BY_NAME[ref.kind], document)
    return cache


def test_the_number_is_handed_over_also_of_one_that_was_not_seen_at_first() -> None:
    """Somebody had taken kvtier's label from it, and the watch shows it again by now."""
    api = _Api()
    [wanted] = [child for child in plan_objects(SCALED)[1] if child.ref == ENGINE]
    cache = _cached({"spec.replicas": 4}, ENGINE)
    result = _apply(api, cache, Diff(missing=(wanted,)))
    assert result.errors == []
    handed_over, applied = api.requests
    assert handed_over.query["fieldManager"] == "kvtier-autoscaling"
    assert handed_over.body == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": ENGINE.name, "namespace": "default", "uid": f"uid of {ENGINE}"},
        "spec": {"replicas": 4},
    }
    assert applied.query["fieldManager"] == "kvtier"


def test_while_the_autoscaler_cannot_be_deleted_nothing_is_written_and_that_is_said() -> None:
    api = _Api()
    [old] = _cached(SCALED, HPA).of("default", UID)
    result = _apply(api, LiveObjectCache(lambda *_: None), Diff(missing=plan_objects()[1], to_prune=(old,)))
    assert api.requests == []
    assert result.failures == [
        ApplyFailure(
            Component.AUTOSCALER,
            "Forbidden",
            f"{HPA} cannot be deleted, and nothing is changed before it is: no rights",
        )
    ]
