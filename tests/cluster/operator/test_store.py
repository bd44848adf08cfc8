"""A store of a resource's own: its password is made with the right to make Secrets, and with no other."""

from typing import Any

from tests.cluster.operator.world import World, resource

REMOTE = {"capacity": "4Gi", "managed": {}}


def _password(world: World) -> str:
    secret: Any = world.core.read_namespaced_secret("qwen-store", world.namespace)
    password: str = secret.data["password"]
    return password


def test_its_password_stays_and_the_resource_does_not_wait_for_it(world: World) -> None:
    tiers = {"cpu": {"capacity": "100Gi"}, "remote": REMOTE}
    world.create(resource(tiers=tiers))
    world.until_object("apps/v1", "Deployment", "qwen-store-0", lambda live: live)
    password = _password(world)
    world.until_condition("StoreReady", status="False")
    world.make_ready()
    world.until_condition("StoreReady", status="True")
    # taken away and back: pruned but for the Secret, which another store of the resource has again
    world.change(tiers={"remote": None})
    world.until_object("apps/v1", "Deployment", "qwen-store-0", lambda live: live is None)
    world.change(tiers={"remote": REMOTE})
    world.until_object("apps/v1", "Deployment", "qwen-store-0", lambda live: live)
    assert _password(world) == password


def test_its_shards_are_made_and_pruned_one_by_one(world: World) -> None:
    """What a server has stays where it is when there are more of them."""
    tiers = {"cpu": {"capacity": "100Gi"}, "remote": REMOTE}
    world.create(resource(tiers=tiers))
    first = world.until_object("apps/v1", "Deployment", "qwen-store-0", lambda live: live)
    assert first
    sharded = REMOTE | {"managed": {"shards": 2, "memory": "5Gi"}}
    world.change(tiers={"remote": sharded})
    world.until_object("apps/v1", "Deployment", "qwen-store-1", lambda live: live)
    world.until_object("policy/v1", "PodDisruptionBudget", "qwen-store", lambda live: live)
    world.make_ready()
    said = world.until_condition("StoreReady", status="True")
    assert said["message"] == "2 of 2 store pods ready"
    world.change(tiers={"remote": sharded | {"managed": {"memory": "5Gi", "shards": 1}}})
    for kind in (("apps/v1", "Deployment"), ("v1", "Service")):
        world.until_object(*kind, "qwen-store-1", lambda live: live is None)
    world.until_object("policy/v1", "PodDisruptionBudget", "qwen-store", lambda live: live is None)
    again = world.find("apps/v1", "Deployment", "qwen-store-0")
    assert again
    assert again["metadata"]["uid"] == first["metadata"]["uid"]
