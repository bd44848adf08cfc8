"""RouterReady: pickers without and with a leader, missing CRDs, objects that could not be applied."""

from dataclasses import replace
from typing import Any

import pytest
from tests.cases.routes import condition, find_hidden, parent_status, route
from tests.unit.operator.reconcile.status.statuses import FULL, READY, conditions

from kvtier_operator.planning.base.names import Component
from kvtier_operator.planning.router.route_order import claim_of
from kvtier_operator.reconcile.api_server import BY_NAME
from kvtier_operator.reconcile.apply.apply import ApplyFailure
from kvtier_operator.reconcile.cache.pods import NotReadyPod
from kvtier_operator.reconcile.facts.objects import pool_parents, route_parents
from kvtier_operator.reconcile.status.router import GatewayPods, Route, UnservedKinds, unserved_kinds

_ROUTERS = [
    ({"picker": None}, "NotCreated", ""),
    ({"picker": replace(READY, ready_replicas=0)}, "Progressing", "0 of 2 picker pods ready"),
    ({"kinds": UnservedKinds(missing_crds=("a.x", "b.x"))}, "CRDsMissing", "a.x, b.x: install them"),
    (
        {"kinds": UnservedKinds(missing_crds=("a.x",))},
        "CRDsMissing",
        "provider to standalone, which needs none",
    ),
    (
        {"kinds": UnservedKinds(missing_crds=("a.x",)), "way_in": GatewayPods(READY)},
        "CRDsMissing",
        "a.x: install it, and the rest follows by itself; meanwhile",
    ),
    (
        {
            "kinds": UnservedKinds(missing_crds=("a.x",)),
            "picker": replace(
                READY, failed_reason="FailedCreate", failed_message="webhook says no", ready_replicas=0
            ),
        },
        "CRDsMissing",
        "; picker pods: a pod cannot be made: webhook says no",
    ),
    ({"failures": (ApplyFailure(Component.PICKER, "NameTaken", "Service x"),)}, "NameTaken", "Service x"),
    (
        {"kinds": UnservedKinds(failures=(ApplyFailure(Component.ROUTER, "Forbidden", "no"),))},
        "Forbidden",
        "no",
    ),
]


def test_of_several_pickers_the_leader_is_ready_and_no_other() -> None:
    leading = replace(READY, ready_replicas=1, stalled=True)
    found = conditions(replace(FULL, picker=leading))["RouterReady"]
    assert (found["status"], found["reason"]) == ("True", "AllReady")
    assert found["message"] == "1 of 2 picker pods ready, which leads; the others stand by"
    kept = NotReadyPod("p-2", "", "ImagePullBackOff", "not there", 1)
    found = conditions(replace(FULL, picker=leading, picker_pods_not_ready=(kept,)))["RouterReady"]
    assert found["status"] == "True"
    assert "1 of 2 picker pods ready; pod p-2: ImagePullBackOff: not there" in found["message"]


@pytest.mark.parametrize(
    "facts",
    [
        {"ready_replicas": 0},
        {"ready_replicas": 0, "stalled": True},
        {"ready_replicas": 1, "updated_replicas": 1},
        {"ready_replicas": 1, "replicas": 3},
        {"ready_replicas": 1, "observed_latest": False},
    ],
    ids=str,
)
def test_several_pickers_without_a_leader_of_the_current_template(facts: dict[str, Any]) -> None:
    found = conditions(replace(FULL, picker=replace(READY, **facts)))["RouterReady"]
    assert (found["status"], found["reason"]) == ("False", "Progressing")


@pytest.mark.parametrize(("change", "reason", "words"), _ROUTERS)
def test_the_router_is_not_ready(change: dict[str, Any], reason: str, words: str) -> None:
    found = conditions(replace(FULL, **change))
    assert (found["RouterReady"]["status"], found["RouterReady"]["reason"]) == ("False", reason)
    assert words in found["RouterReady"]["message"]
    assert found["EnginesReady"]["status"] == "True"
    assert found["Ready"]["reason"] == reason


_PROBLEMS = [
    (GatewayPods(None), "NotCreated", "the gateway's Deployment is not there yet"),
    (GatewayPods(replace(READY, ready_replicas=0)), "Progressing", "0 of 2 gateway pods ready"),
    (
        GatewayPods(
            replace(READY, ready_replicas=1),
            (NotReadyPod("g-1", "n", "CreateContainerConfigError", 'secret "tls" not found', 1),),
        ),
        "CreateContainerConfigError",
        '1 of 2 gateway pods ready; pod g-1 on node n: CreateContainerConfigError: secret "tls" not found',
    ),
]


@pytest.mark.parametrize(("gateway", "reason", "words"), _PROBLEMS)
def test_kvtiers_own_gateway_is_not_ready(gateway: GatewayPods, reason: str, words: str) -> None:
    found = conditions(replace(FULL, way_in=gateway))["RouterReady"]
    assert (found["status"], found["reason"]) == ("False", reason)
    assert words in found["message"]


def test_kvtiers_own_gateway_is_ready() -> None:
    found = conditions(replace(FULL, way_in=GatewayPods(READY)))["RouterReady"]
    assert (found["status"], found["message"]) == (
        "True",
        "1 of 1 picker pods ready; 2 of 2 gateway pods ready",
    )


def test_monitoring_without_its_crds_is_told_and_no_failure() -> None:
    kinds = unserved_kinds([BY_NAME["ServiceMonitor"], BY_NAME["HTTPRoute"]], lambda _: "not installed")
    assert kinds.missing_crds == ("httproutes.gateway.networking.k8s.io",)
    assert kinds.left_out == ("servicemonitors.monitoring.coreos.com",)
    found = conditions(replace(FULL, kinds=replace(kinds, missing_crds=())))
    assert found["RouterReady"]["status"] == "True"
    assert "servicemonitors.monitoring.coreos.com" in found["RouterReady"]["message"]


_ACCEPTED = parent_status(condition(), condition("ResolvedRefs"))
_FIRST, _OURS = (claim_of(route(name)) for name in ("a/first", "team/qwen"))
assert _FIRST
assert _OURS


def _route(*parents: dict[str, Any], pool: tuple[dict[str, Any], ...] = ()) -> Route:
    document = route(status={"parents": [*parents]})
    return Route("team/qwen", route_parents(document), pool_parents(document | {"status": {"parents": pool}}))


_ROUTES = [
    (_route(), "RouteUnanswered", "kubectl get gateway -n infra front"),
    (_route(parent_status()), "Progressing", "Gateway infra/front has yet to look at HTTPRoute team/qwen"),
    (
        _route(parent_status(condition("Accepted", "False", "NotAllowedByListeners", "not from here"))),
        "RouteRefused",
        "not from here (example.com/gateway); allow routes of this namespace",
    ),
    (
        _route(_ACCEPTED, pool=(parent_status(condition("Accepted", "False", "No", "no pools")),)),
        "PoolRefused",
        "Gateway infra/front on InferencePool team/qwen: Accepted=False, No: no pools",
    ),
    (
        _route(_ACCEPTED, pool=(parent_status(condition("Accepted", "Unknown", "Pending", "soon")),)),
        "Progressing",
        "InferencePool team/qwen as it is now: Accepted=Unknown, Pending: soon",
    ),
    (
        replace(_route(_ACCEPTED), hidden=find_hidden(_OURS, [_FIRST])),
        "RouteHidden",
        (
            "go to an HTTPRoute of another namespace, which comes first by age or name, and none to "
            "HTTPRoute team/qwen"
        ),
    ),
]


@pytest.mark.parametrize(("is_so", "reason", "words"), _ROUTES)
def test_requests_do_not_reach_the_route(is_so: Route, reason: str, words: str) -> None:
    found = conditions(replace(FULL, way_in=is_so))
    assert (found["RouterReady"]["status"], found["RouterReady"]["reason"]) == ("False", reason)
    assert found["RouterReady"]["message"].startswith("1 of 1 picker pods ready; ")
    assert words in found["RouterReady"]["message"]
    assert found["Ready"]["reason"] == reason


def test_a_route_that_is_taken() -> None:
    elsewhere = parent_status(condition("Accepted", "False"), gateway="infra/other")
    for pool in ((), (_ACCEPTED,), (elsewhere,)):
        found = conditions(replace(FULL, way_in=_route(_ACCEPTED, pool=pool)))
        assert found["Ready"]["status"] == "True"
        assert found["RouterReady"]["message"] == (
            "1 of 1 picker pods ready; its route is taken by Gateway infra/front"
        )


def test_a_picker_that_is_not_ready_speaks_before_the_route() -> None:
    found = conditions(replace(FULL, picker=replace(READY, ready_replicas=0), way_in=_route()))
    assert found["RouterReady"]["reason"] == "Progressing"
