"""The policies of picker and engines on the API server: as planned, put back, gone when nobody wants them.

Nothing here enforces them: what a network makes of one is its own.
"""

from tests.cluster.operator.world import World, resource

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan

POLICY = ("networking.k8s.io/v1", "NetworkPolicy")
BOTH = {
    "flavor": "builtin",
    "kvEvents": True,
    "networkPolicy": {"namespaces": ["proxies"], "ipBlocks": ["10.129.0.0/23"]},
}


def test_policies_are_as_planned_and_are_put_back(world: World) -> None:
    made = world.create(resource(router=BOTH))
    world.until_settled()
    planned = {
        document["metadata"]["name"]: document["spec"]
        for document in build_objects(make_plan(parse_resource(made, "test"), Observed()))
        if document["kind"] == POLICY[1]
    }
    assert set(planned) == {"qwen-engine", "qwen-picker"}
    for name, spec in planned.items():
        live = world.find(*POLICY, name)
        assert live
        assert live["spec"] == spec, "no field is another's, and none was dropped"
        # somebody opens it to all
        world.patch(*POLICY, name, {"spec": {"ingress": [{}]}})
        world.until_object(*POLICY, name, lambda document, spec=spec: document and document["spec"] == spec)  # type: ignore[misc]
    world.delete(*POLICY, "qwen-picker")
    world.until_object(
        *POLICY, "qwen-picker", lambda document: document and document["spec"] == planned["qwen-picker"]
    )


def test_they_go_when_they_are_switched_off(world: World) -> None:
    world.create(resource(router=BOTH))
    world.until_settled()
    assert (POLICY[1], "qwen-engine") in world.children()
    world.change(router={"networkPolicy": {"enabled": False, "namespaces": None, "ipBlocks": None}})
    world.until_settled()
    assert {kind for kind, _ in world.children()}.isdisjoint({POLICY[1]})
