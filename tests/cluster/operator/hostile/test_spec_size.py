"""A spec as large as an API server takes: the operator of all refuses it and serves the others."""

from tests.cluster.operator.world import World, resource


def test_a_spec_of_half_a_megabyte_is_refused_and_others_are_served(world: World) -> None:
    world.create(resource("large", engine={"extraArgs": [f"--x={'x' * 4_000}"] * 120}))
    world.create(resource())
    said = world.until_condition("Accepted", status="False", name="large")["message"]
    assert "65,536 at most" in said
    world.until_settled()
    assert world.children()
    assert not world.children("large")
