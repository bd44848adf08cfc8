"""From a resource's creation to its last object, one new resource a second."""

import asyncio
import time
from collections import Counter

from tests.cluster.harness.api.connection import Connection, WatchEndedError, collection
from tests.cluster.scale import fleet

from kvtier_operator.planning.base.names import INSTANCE_LABEL


async def creation_to_last_object_ms(
    connection: Connection, numbers: range, every_s: float = 1.0
) -> list[float]:
    """Milliseconds for each resource, as a watch of every kind sees the objects come.

    Raises:
        ExceptionGroup: With a WatchEndedError in it: what comes while nobody watches has no time.
    """
    wanted = {fleet.name_of(number): len(fleet.objects(number)) for number in numbers}
    kinds = dict.fromkeys(document["kind"] for document in fleet.objects(0))
    seen: Counter[str] = Counter()
    complete_at: dict[str, float] = {}
    created_at: dict[str, float] = {}
    all_complete = asyncio.Event()
    listening = asyncio.Barrier(len(kinds) + 1)

    async def listen(kind: str) -> None:
        path = collection(kind, fleet.NAMESPACE)
        try:
            async for what, event in connection.events(path, started=listening.wait):
                name = event["metadata"].get("labels", {}).get(INSTANCE_LABEL, "")
                if what != "ADDED" or name not in wanted:
                    continue
                seen[name] += 1
                if seen[name] == wanted[name]:
                    complete_at[name] = time.monotonic()
                    if len(complete_at) == len(wanted):
                        all_complete.set()
        except WatchEndedError as error:
            error.add_note("run the benchmark again")
            raise

    async with asyncio.TaskGroup() as tasks:
        listeners = [tasks.create_task(listen(kind)) for kind in kinds]
        await listening.wait()
        start = time.monotonic()
        for place, number in enumerate(numbers):
            # the load is one a second
            await asyncio.sleep(max(0.0, start + place * every_s - time.monotonic()))
            resource = fleet.resource(number)
            created_at[resource["metadata"]["name"]] = time.monotonic()
            await connection.create_all([resource])
        await all_complete.wait()
        for listener in listeners:
            listener.cancel()
    return [(complete_at[name] - created_at[name]) * 1e3 for name in wanted]
