"""`spec.tiers`: where the prefix cache goes beyond the device."""

from enum import StrEnum
from typing import Any

from pydantic import Field

from kvtier_operator.api.base import ApiModel, cel, with_rules
from kvtier_operator.api.quantity import ByteQuantity


class Policy(StrEnum):
    """How much a property of memory matters."""

    REQUIRE = "Require"
    PREFER = "Prefer"
    OFF = "Off"


class HugepageSize(StrEnum):
    """Sizes of explicit huge pages on x86-64 and arm64 with 4 KiB base pages."""

    TWO_MIB = "2Mi"
    ONE_GIB = "1Gi"

    @property
    def bytes(self) -> int:
        """Size of one page in bytes."""
        return 2 * 1024**2 if self is HugepageSize.TWO_MIB else 1024**3


class Hugepages(ApiModel):
    """Explicit huge pages under the CPU tier."""

    model_config = with_rules(
        cel(
            "!has(self.pageSize) || self.policy != 'Off'",
            "pageSize needs a policy: set hugepages.policy to Require or Prefer",
        )
    )

    policy: Policy = Field(
        Policy.OFF,
        description="Require refuses to run without; Prefer falls back to transparent huge pages, then 4 KiB; Off uses 4 KiB pages.",
    )
    page_size: HugepageSize | None = Field(
        None, description="Size of one page; 2Mi when a policy is set and this is empty."
    )


class Memlock(ApiModel):
    """Locking the CPU tier in memory."""

    policy: Policy = Field(
        Policy.OFF,
        description="Require refuses to run unlocked; Prefer locks what the limits allow and says so; Off leaves it to the driver.",
    )


class CpuTier(ApiModel):
    """Pinned CPU memory."""

    capacity: ByteQuantity = Field(
        description="Memory for the prefix cache, per engine pod, all ranks together.",
        json_schema_extra={
            "x-kubernetes-validations": [
                cel(
                    "type(self) == int ? self > 0 : quantity(self).isGreaterThan(quantity('0'))",
                    "capacity must be more than 0 bytes",
                )
            ]
        },
    )
    hugepages: Hugepages = Field(
        default_factory=Hugepages, description="Explicit huge pages under this tier."
    )
    memlock: Memlock = Field(default_factory=Memlock, description="Locking this tier in memory.")


class EphemeralVolume(ApiModel):
    """A volume made with each pod and gone with it."""

    storage_class_name: str | None = Field(
        None, description="Storage class; the cluster's default when empty.", min_length=1, max_length=253
    )


class PersistentVolumeClaim(ApiModel):
    """A claim that exists already."""

    claim_name: str = Field(description="Name of the PersistentVolumeClaim.", min_length=1, max_length=253)


class HostPath(ApiModel):
    """A folder of the node."""

    path: str = Field(description="Absolute path on the node.", min_length=1, max_length=4096, pattern="^/")


class Volume(ApiModel):
    """Where a disk tier lives: exactly one of its fields."""

    model_config = with_rules(
        cel(
            "[has(self.emptyDir), has(self.ephemeral), has(self.persistentVolumeClaim), has(self.hostPath)].filter(x, x).size() == 1",
            "give exactly one of emptyDir, ephemeral, persistentVolumeClaim, hostPath",
        )
    )

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


class DiskTier(ApiModel):
    """Local disk."""

    capacity: ByteQuantity = Field(
        description="Disk space for the prefix cache, per engine pod, all ranks and volumes together: a hard bound.",
        json_schema_extra={
            "x-kubernetes-validations": [
                cel(
                    "type(self) == int ? self > 0 : quantity(self).isGreaterThan(quantity('0'))",
                    "capacity must be more than 0 bytes",
                )
            ]
        },
    )
    volume: Volume = Field(description="Where this tier lives.")
    extra_volumes: list[Volume] = Field(
        default_factory=list,
        description="Further volumes of the same tier, one a disk; the capacity is split evenly. Only backend LMCache spreads over several.",
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    direct_io: bool = Field(
        default=True,
        alias="directIO",
        description="Bypass the page cache (O_DIRECT), where backend and filesystem can.",
    )


class Tiers(ApiModel):
    """The tiers beyond the device, at least one."""

    model_config = with_rules(
        cel("has(self.cpu) || has(self.disk)", "give at least one tier: tiers.cpu or tiers.disk")
    )

    cpu: CpuTier | None = Field(None, description="Pinned CPU memory.")
    disk: DiskTier | None = Field(None, description="Local disk, below the CPU tier.")
