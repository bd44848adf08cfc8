"""Whose a pod is: its labels and its owner anybody may write who may make pods."""

from typing import Final

from kvtier_common.errors import TooLargeError
from kvtier_common.kubernetes.client import METADATA_ONLY, Api
from kvtier_common.kubernetes.documents import as_object, parsed
from kvtier_common.kubernetes.errors import NotFoundError
from kvtier_operator.reconcile.api_server.kinds import REPLICA_SET
from kvtier_operator.reconcile.cache.live_object import owner_of
from kvtier_operator.reconcile.facts.pod import ServingPod

_METADATA_BYTES: Final = 1 << 20
"""Of a ReplicaSet's metadata: four times what all its annotations may have."""


async def belongs_to(api: Api, namespace: str, pod: ServingPod, deployment_uid: str) -> bool:
    """Whether the ReplicaSet that a pod names as its controller exists and belongs to the Deployment.

    Raises:
        KvtierError: The API server gave no answer, or one that is none.
    """
    try:
        path = REPLICA_SET.path(namespace, pod.replica_set)
        found = await api.get(path, accept=METADATA_ONLY, most_bytes=_METADATA_BYTES)
    except (NotFoundError, TooLargeError):
        return False
    metadata = as_object(parsed(found).get("metadata"))
    return (metadata.get("uid"), owner_of(metadata)[0]) == (pod.replica_set_uid, deployment_uid)
