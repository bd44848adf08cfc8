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
    world.until_object("apps/v1", "Deployment", "qwen-store", lambda live: live)
    password = _password(world)
    world.until_condition("StoreReady", status="False")
    world.make_ready()
    world.until_condition("StoreReady", status="True")
    # taken away and back: pruned but for the Secret, which another store of the resource has again
    world.change(tiers={"remote": None})
    world.until_object("apps/v1", "Deployment", "qwen-store", lambda live: live is None)
    world.change(tiers={"remote": REMOTE})
    world.until_object("apps/v1", "Deployment", "qwen-store", lambda live: live)
    assert _password(world) == password
