"""What the operator is measured against: the same objects, made by a client that does nothing else."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from tests.cluster.harness.api.connection import Connection, collection
from tests.cluster.scale import fleet
from tests.cluster.scale.following import follow_until

DEPLOYMENTS = collection("Deployment")


async def bare_ready_s(connection: Connection, count: int) -> float:
    """Seconds from the first request until every Deployment of `count` resources is ready."""
    objects = [document for number in range(count) for document in fleet.objects(number)]
    deployments = sum(document["kind"] == "Deployment" for document in objects)
    start = time.monotonic()
    async with asyncio.TaskGroup() as both:
        both.create_task(follow_until(connection, DEPLOYMENTS, _is_ready, deployments))
        both.create_task(connection.create_all(objects))
    return time.monotonic() - start


def _is_ready(deployment: Mapping[str, Any]) -> bool:
    return bool(deployment["status"].get("readyReplicas", 0) == deployment["spec"]["replicas"])
