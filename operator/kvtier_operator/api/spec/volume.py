"""Volumes, of the kinds that a pod has and kvtier takes."""

from typing import Any, Final

from pydantic import Field

from kvtier_operator.api.base import ApiModel, rule
from kvtier_operator.api.formats.dns_names import DnsSubdomain

PATH_PATTERN: Final = "^/"


class EphemeralVolume(ApiModel):
    """A volume made with each pod and gone with it."""

    storage_class_name: DnsSubdomain | None = Field(
        None, description="Storage class; the cluster's default when empty."
    )


class PersistentVolumeClaim(ApiModel):
    """A claim that exists already."""

    claim_name: DnsSubdomain = Field(description="Name of the PersistentVolumeClaim.")


class HostPath(ApiModel):
    """A folder of the node."""

    path: str = Field(
        description="Absolute path on the node.", min_length=1, max_length=4096, pattern=PATH_PATTERN
    )


class Volume(ApiModel):
    """Where something is kept: exactly one of its fields."""

    empty_dir: dict[str, Any] | None = Field(
        None, description="The node's own disk, gone with the pod; write {}.", max_length=0
    )
    ephemeral: EphemeralVolume | None = Field(
        None, description="A volume made with each pod from a storage class."
    )
    persistent_volume_claim: PersistentVolumeClaim | None = Field(
        None, description="A claim that exists already."
    )
    host_path: HostPath | None = Field(
        None, description="A folder of the node, such as a mounted local NVMe."
    )

    @rule(
        "[has(self.emptyDir), has(self.ephemeral), has(self.persistentVolumeClaim), has(self.hostPath)].filter(x, x).size() == 1",
        "give exactly one of emptyDir, ephemeral, persistentVolumeClaim, hostPath",
    )
    def has_one_source(self) -> bool:
        """One volume is one place."""
        sources = (self.empty_dir, self.ephemeral, self.persistent_volume_claim, self.host_path)
        return sum(source is not None for source in sources) == 1
