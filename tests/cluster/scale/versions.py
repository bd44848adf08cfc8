"""What a cluster holds, told by the server itself: nothing was written if no resource version changed."""

from typing import Final

from tests.cluster.harness.connection import Connection, collection
from tests.cluster.scale import fleet

_KINDS: Final = tuple(dict.fromkeys((each["apiVersion"], each["kind"]) for each in fleet.objects(0)))
_TIER: Final = ("kvtier.dev/v1alpha1", "KVCacheTier")


async def resource_versions(connection: Connection) -> dict[tuple[str, str], str]:
    """Resource version by kind and uid of all resources and their objects."""
    found = {}
    for api_version, kind in (*_KINDS, _TIER):
        listed = await connection.request("GET", collection(api_version, kind, fleet.NAMESPACE))
        for each in listed["items"]:
            found[kind, each["metadata"]["uid"]] = each["metadata"]["resourceVersion"]
    return found
