"""All that a namespace holds of kvtier, without what two equal runs cannot have in common."""

import json
import re
from typing import Any, Final

from tests.cluster.harness.api.connection import Connection, collection

CHILDREN: Final = (
    "ServiceAccount",
    "ConfigMap",
    "Service",
    "Deployment",
    "PodDisruptionBudget",
    "Role",
    "RoleBinding",
    "InferencePool",
    "HTTPRoute",
)
"""Kinds of objects that a life's resource has."""
_OF_ONE_RUN: Final = {
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "managedFields",
    "lastTransitionTime",
    "lastUpdateTime",
    "clusterIP",
    "clusterIPs",
    "generation",
    "observedGeneration",
    "deployment.kubernetes.io/revision",
    "kvtier.dev/applied-hash",  # of the whole object, the namespace's name in it
}


async def snapshot(connection: Connection, namespace: str) -> str:
    """The objects as text: the same bytes for equal runs, whatever the namespace is called."""
    found = {}
    for kind in (*CHILDREN, "KVCacheTier"):
        listed = await connection.request("GET", collection(kind, namespace))
        for item in listed["items"]:
            if kind != "KVCacheTier":
                item.pop("status", None)  # others write it
            if "ownerReferences" in item["metadata"] or kind == "KVCacheTier":
                found[f"{kind}/{item['metadata']['name']}"] = _comparable(item)
    return re.sub(rf"\b{namespace}\b", "NAMESPACE", json.dumps(found, sort_keys=True, indent=1))


def _comparable(value: Any) -> Any:  # noqa: ANN401 - it is JSON
    if isinstance(value, dict):
        return {key: _comparable(each) for key, each in value.items() if key not in _OF_ONE_RUN}
    if isinstance(value, list):
        return [_comparable(each) for each in value]
    return value
