"""What a cluster holds, told by the server itself: nothing was written if no resource version changed."""

from typing import Final

from tests.cluster.harness.api.connection import Connection, collection
from tests.cluster.scale import fleet

_KINDS: Final = (*dict.fromkeys(document["kind"] for document in fleet.objects(0)), "KVCacheTier")


async def resource_versions(connection: Connection) -> dict[tuple[str, str], str]:
    """Resource version by kind and uid of all resources and their objects."""
    found = {}
    for kind in _KINDS:
        listed = await connection.request("GET", collection(kind, fleet.NAMESPACE))
        for item in listed["items"]:
            found[kind, item["metadata"]["uid"]] = item["metadata"]["resourceVersion"]
    return found
