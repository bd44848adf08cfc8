"""Routes: what gateways' controllers say of them, and routes that take each other's requests."""

from collections.abc import Iterator

import pytest
from tests.cases.routes import condition, route
from tests.cluster.harness.api.custom_resources import install_definitions
from tests.cluster.harness.operator.operator import Operator
from tests.cluster.harness.programs.modules import published_crds
from tests.cluster.harness.providers.provider import Cluster
from tests.cluster.operator.world import POOL, ROUTE, World, create_namespace, resource

from kvtier_operator.planning.router.engine_routes import CHAT

OWN_PATH = {"parentRef": {"name": "gateway"}, "ownPath": True}
_CRDS = {"inferencepools.inference.networking.k8s.io", "httproutes.gateway.networking.k8s.io"}


@pytest.fixture(scope="module", autouse=True)
def _served(server: Cluster, operator: Operator) -> Iterator[None]:
    del operator
    definitions = (definition for definition in published_crds() if definition["metadata"]["name"] in _CRDS)
    with server.client() as api:
        with install_definitions(api, definitions):
            yield
        # the next test's resource is not to be the one by which the operator learns that they are gone
        world = World(api, create_namespace(api, "after-routes"))
        world.create(resource())
        world.until_condition("RouterReady", reason="CRDsMissing")


def _routed(world: World, name: str = "qwen", *, hosts: tuple[str, ...] = ()) -> None:
    """A resource with a route, whose pods are ready."""
    gateway = {"parentRef": {"name": "gateway"}, "hostnames": [*hosts]}
    world.create(resource(name, router={"gateway": gateway}))
    world.until_object(*ROUTE, name, lambda live: live)
    world.until_settled(name)
    world.make_ready(name)


def test_a_gateway_that_is_not_there(world: World) -> None:
    _routed(world)
    said = world.until_condition("RouterReady", reason="RouteUnanswered")["message"]
    assert f"Gateway {world.namespace}/gateway" in said
    assert f"kubectl get gateway -n {world.namespace} gateway" in said
    assert world.until_condition("Ready", status="False")["reason"] == "RouteUnanswered"


def test_what_the_gateways_controller_says_is_told_in_its_words(world: World) -> None:
    _routed(world)
    world.gateway_says(condition("Accepted", "False", "NotAllowedByListeners", "no listener allows team"))
    said = world.until_condition("RouterReady", reason="RouteRefused")["message"]
    assert "NotAllowedByListeners: no listener allows team" in said
    world.gateway_says(condition(), condition("ResolvedRefs", "False", "InvalidKind", "no pools here"))
    world.until(lambda each: "no pools here" in str(each["status"]), "words about the pool")
    world.gateway_says(condition(), condition("ResolvedRefs"))
    said = world.until_condition("Ready", status="True")["message"]
    assert f"its route is taken by Gateway {world.namespace}/gateway" in said
    world.gateway_says(condition("Accepted", "False", "InvalidExtensionRef", "no picker there"), of=POOL)
    assert "no picker there" in world.until_condition("RouterReady", reason="PoolRefused")["message"]
    world.gateway_says(condition(), of=POOL)
    world.until_condition("Ready", status="True")

    before = world.get()
    world.gateway_says(condition(message="the same in other words"))
    world.gateway_says(condition("Accepted", "Unknown", "Pending", "wait"))
    world.until_condition("RouterReady", reason="Progressing")
    assert world.writes_since(before) == 1


def test_what_was_said_of_a_route_before_it_changed_does_not_count(world: World) -> None:
    _routed(world)
    world.gateway_says(condition())
    world.until_condition("Ready", status="True")
    world.change(router={"gateway": {"hostnames": ["qwen.example.com"]}})
    said = world.until_condition("RouterReady", reason="Progressing")["message"]
    assert "has yet to look at HTTPRoute" in said
    world.gateway_says(condition())
    world.until_condition("Ready", status="True")


def test_two_resources_that_ask_for_the_same_requests(world: World) -> None:
    for name in ("first", "second"):
        _routed(world, name)
        world.gateway_says(condition(), name=name)
    said = world.until_condition("RouterReady", reason="RouteHidden", name="second")["message"]
    assert f"HTTPRoute {world.namespace}/first" in said
    assert f"HTTPRoute {world.namespace}/second" in said
    assert "spec.router.gateway.hostnames" in said
    world.until_condition("Ready", status="True", name="first")
    world.change("second", router={"gateway": {"hostnames": ["second.example.com"]}})
    world.until_condition("RouterReady", reason="Progressing", name="second")
    world.gateway_says(condition(), name="second")
    world.until_condition("Ready", status="True", name="second")


def test_two_resources_that_share_a_gateway_by_paths_of_their_own(world: World) -> None:
    for name in ("first", "second"):
        world.create(resource(name, router={"gateway": OWN_PATH}))
        world.until_object(*ROUTE, name, lambda live: live)
        world.until_settled(name)
        world.make_ready(name)
        world.gateway_says(condition(), name=name)
    world.until_condition("Ready", status="True", name="first")
    world.until_condition("Ready", status="True", name="second")
    made = world.find(*ROUTE, "second")
    assert made
    [path] = (match["path"] for match in made["spec"]["rules"][0]["matches"])
    assert path == {"type": "PathPrefix", "value": f"/{world.namespace}/second/v1/models"}
    # more paths than a route can have that rewrites them; none is left when they need no rewriting
    world.until_object(*ROUTE, "second-paths-2", lambda live: live)
    world.change("second", router={"gateway": {"ownPath": False}})
    world.until_object(*ROUTE, "second-paths-2", lambda live: not live)


def test_a_path_of_ones_own_that_somebody_has(world: World) -> None:
    path = {"type": "PathPrefix", "value": f"/{world.namespace}/second{CHAT}"}
    theirs = route(
        f"{world.namespace}/another", gateway=f"{world.namespace}/gateway", matches=[{"path": path}]
    )
    world.make(*ROUTE, theirs)  # first: the older one is served
    world.create(resource("second", router={"gateway": OWN_PATH}))
    world.until_object(*ROUTE, "second", lambda live: live)
    world.until_settled("second")
    world.make_ready("second")
    world.gateway_says(condition(), name="second")
    said = world.until_condition("RouterReady", reason="RouteHidden", name="second")["message"]
    assert f"all requests below /{world.namespace}/second{CHAT} for every host go to HTTPRoute " in said


def test_a_route_of_somebody_else(world: World) -> None:
    # of the same second the first by name is served
    chat = [{"path": {"type": "PathPrefix", "value": CHAT}}]
    theirs = route(f"{world.namespace}/another", gateway=f"{world.namespace}/gateway", matches=chat)
    world.make(*ROUTE, theirs)
    _routed(world)
    world.gateway_says(condition())
    said = world.until_condition("RouterReady", reason="RouteHidden")["message"]
    assert f"HTTPRoute {world.namespace}/another" in said
    refused = condition("Accepted", "False", "NotAllowedByListeners")
    world.gateway_says(refused, name="another")
    world.until_condition("Ready", status="True")
    world.gateway_says(condition(), name="another")
    world.until_condition("RouterReady", reason="RouteHidden")
    world.delete(*ROUTE, "another")
    world.until_condition("Ready", status="True")


def test_what_someone_adds_to_a_route_is_taken_away(world: World) -> None:
    _routed(world)
    made = world.find(*ROUTE, "qwen")
    assert made
    added = {"type": "RequestHeaderModifier", "requestHeaderModifier": {"remove": ["authorization"]}}
    rule = made["spec"]["rules"][0]
    changed = rule | {"filters": [added], "backendRefs": [rule["backendRefs"][0] | {"weight": 0}]}
    world.patch(*ROUTE, "qwen", {"spec": {"hostnames": ["elsewhere.example"], "rules": [changed]}})
    world.until_object(
        *ROUTE,
        "qwen",
        lambda live: (
            live
            and not live["spec"].get("hostnames")
            and not live["spec"]["rules"][0].get("filters")
            and live["spec"]["rules"][0]["backendRefs"][0]["weight"] == 1
        ),
    )
