"""A Deployment with a pod template is tried before anything of its resource is written."""

import asyncio
from typing import Any

import pytest
from tests.unit.operator.reconcile.objects import UID, live_manifest, plan_objects

from kvtier_common.errors import KvtierError
from kvtier_common.kubernetes.answers import InvalidObjectError, ServerError
from kvtier_common.kubernetes.client import Request
from kvtier_operator.planning.base.names import Component
from kvtier_operator.reconcile.apply.apply import Applier, ApplyResult, OwnershipLookup
from kvtier_operator.reconcile.apply.diff import Diff
from kvtier_operator.reconcile.apply.writer import Writer
from kvtier_operator.reconcile.cache.live_objects import LiveObjectCache
from kvtier_operator.reconcile.facts.cached_plan import DesiredObject

TEMPLATE = {"spec": {"schedulerName": "volcano"}}


class _Api:
    """Takes what it is sent, but for dry runs where it has an error for them."""

    def __init__(self, error: KvtierError | None = None) -> None:
        self.error = error
        self.requests: list[Request] = []

    async def request(self, request: Request) -> bytes:
        self.requests.append(request)
        if self.error and "dryRun" in request.query:
            raise self.error
        return b"{}"


class _Writer(Writer):
    def __init__(self, api: _Api) -> None:
        super().__init__(api)  # type: ignore[arg-type]
        self.applied: list[DesiredObject] = []

    async def apply(self, desired: DesiredObject) -> dict[str, Any]:
        self.applied.append(desired)
        return live_manifest(desired)


class _Unowned(OwnershipLookup):
    async def owner(self, ref: object) -> None:
        del ref


def _apply(api: _Api, **templates: object) -> tuple[ApplyResult, _Writer]:
    changes = {f"spec.{part}.podTemplate": template for part, template in templates.items()}
    writer = _Writer(api)
    applier = Applier(writer, LiveObjectCache(lambda *_: None), _Unowned(api))  # type: ignore[arg-type]
    return asyncio.run(applier.apply(Diff(missing=plan_objects(changes)[1]), UID)), writer


def test_without_a_template_nothing_is_tried() -> None:
    api = _Api()
    result, writer = _apply(api)
    assert api.requests == []
    assert not result.failures
    assert len(writer.applied) == result.written


def test_each_deployment_with_a_template_is_tried_strictly() -> None:
    api = _Api()
    result, writer = _apply(api, engine=TEMPLATE, router=TEMPLATE)
    assert [request.path.rpartition("/")[2] for request in api.requests] == [
        "qwen3-32b-engine",
        "qwen3-32b-picker",
    ]
    for request in api.requests:
        assert request.query["dryRun"] == "All"
        assert request.query["fieldValidation"] == "Strict"
    assert result.written == len(writer.applied) > len(api.requests)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (InvalidObjectError("spec.template.spec: no"), "PodTemplateInvalid"),
        (ServerError("failed to create typed patch object: .spec.x: no"), "PodTemplateInvalid"),
        (ServerError("etcd is gone"), "Server"),
    ],
)
@pytest.mark.parametrize(("part", "component"), [("engine", Component.ENGINE), ("router", Component.PICKER)])
def test_where_it_is_refused_nothing_is_written(
    error: KvtierError, reason: str, part: str, component: Component
) -> None:
    result, writer = _apply(_Api(error), **{part: TEMPLATE})
    assert writer.applied == []
    assert result.written == 0
    [failure] = result.failures
    assert (failure.component, failure.reason) == (component, reason)
    assert str(error) in failure.message
    assert (f"spec.{part}.podTemplate" in failure.message) == (reason == "PodTemplateInvalid")
