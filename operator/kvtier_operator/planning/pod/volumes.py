"""The volumes of a resource as they stand in a pod."""

from collections.abc import Mapping
from typing import Any

from kvtier_operator.api.spec.pod import Volume
from kvtier_operator.planning.units import quantity


def volume_source(volume: Volume, size_bytes: int | None) -> Mapping[str, Any]:
    """The source of a pod's volume.

    Args:
        volume: As the resource has it.
        size_bytes: What it must hold, where that is known: a claim asks for it, and an emptyDir is bounded by
            it; the other kinds have the size that they have.
    """
    if volume.ephemeral is not None:
        claim: dict[str, Any] = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": quantity(size_bytes or 0)}},
        }
        if volume.ephemeral.storage_class_name:
            claim["storageClassName"] = volume.ephemeral.storage_class_name
        return {"ephemeral": {"volumeClaimTemplate": {"spec": claim}}}
    if volume.persistent_volume_claim is not None:
        return {"persistentVolumeClaim": {"claimName": volume.persistent_volume_claim.claim_name}}
    if volume.host_path is not None:
        return {"hostPath": {"path": volume.host_path.path, "type": "DirectoryOrCreate"}}
    return {"emptyDir": {} if size_bytes is None else {"sizeLimit": quantity(size_bytes)}}
