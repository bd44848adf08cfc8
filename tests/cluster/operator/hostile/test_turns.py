"""A tenant with many resources does not hold up the one of another namespace."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from tests.cluster.harness.api.connection import Connection, collection, connect
from tests.cluster.operator.world import World, create_namespace, resource

_CROWD: Final = 100
_DEADLINE_S: Final = 240


async def _served_before(connection: Connection, crowd: str, quiet: str) -> tuple[int, int]:
    """Of the crowd, how many had a status when the other resource was made, and when it had one.

    Waits for all of it: other tests of the same operator count what it writes.
    """
    served: set[str] = set()
    then: list[int] = []
    is_crowded = asyncio.Event()

    async def follow() -> None:
        async for _, event in connection.events(collection("KVCacheTier")):
            place = event["metadata"]["namespace"], event["metadata"]["name"]
            if place[0] == crowd and _is_served(event):
                served.add(place[1])
                is_crowded.set()
            if place[0] == quiet and _is_served(event) and not then:
                then.append(len(served))
            if then and len(served) == _CROWD:
                return

    following = asyncio.create_task(follow())
    await connection.create_all(_placed(resource(f"tier-{number}"), crowd) for number in range(_CROWD))
    await is_crowded.wait()
    before = len(served)
    await connection.create_all([_placed(resource(), quiet)])
    await following
    return before, then[0]


def _placed(document: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    return {**document, "metadata": {**document["metadata"], "namespace": namespace}}


def _is_served(document: Mapping[str, Any]) -> bool:
    return "observedGeneration" in document["status"]


def test_a_namespace_with_one_resource_does_not_wait_for_the_hundred_of_another(
    world: World,
) -> None:
    crowd = create_namespace(world.api, f"{world.namespace}-crowd")

    async def run() -> tuple[int, int]:
        async with asyncio.timeout(_DEADLINE_S), connect(world.api.configuration) as connection:
            return await _served_before(connection, crowd, world.namespace)

    before, then = asyncio.run(run())
    assert before < _CROWD // 2, "the crowd was served faster than it was made: this shows nothing"
    assert then - before < (_CROWD - before) // 2
