"""RouterReady with a route: what its Gateway says of it, and who gets its requests."""

from dataclasses import replace
from typing import Any

import pytest
from tests.cases.routes import condition, hidden, parent_status, route
from tests.unit.operator.reconcile.status.statuses import FULL, READY, conditions

from kvtier_operator.planning.router.route_claims import claim_of
from kvtier_operator.reconcile.facts.objects import pool_parents, route_parents
from kvtier_operator.reconcile.status.router import Route

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
        replace(_route(_ACCEPTED), hidden=hidden(_OURS, [_FIRST])),
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
