"""The volumes of a disk tier: their names, where the container sees them, and their sources in a pod."""

from typing import Final

from kvtier_operator.api.spec.pod import Volume
from kvtier_operator.api.spec.tiers import DiskTierSpec
from kvtier_operator.planning.pod.container_parts import Mount
from kvtier_operator.planning.pod.volumes import volume_source
from kvtier_operator.planning.units import MIB, ceil_div

VOLUME_NAME: Final = "kv-disk"
MOUNT_ROOT: Final = "/var/lib/kvtier/disk"


def disk_volumes(disk: DiskTierSpec) -> tuple[Volume, ...]:
    """All volumes of the tier, in the order of the resource."""
    return (disk.volume, *disk.extra_volumes)


def disk_mounts(disk: DiskTierSpec | None, payload_bytes: int | None = None) -> tuple[Mount, ...]:
    """One mount a volume of the tier, in the order of the resource; empty without a disk tier.

    Args:
        disk: The tier.
        payload_bytes: Blocks that each volume holds; the capacity split evenly where None.
    """
    if disk is None:
        return ()
    volumes = disk_volumes(disk)
    size = ceil_div(disk.capacity.bytes, len(volumes)) if payload_bytes is None else payload_bytes
    return tuple(
        Mount(
            name=f"{VOLUME_NAME}-{index}",
            mount_path=f"{MOUNT_ROOT}/{index}",
            source=volume_source(volume, volume_bytes(size)),
            payload_bytes=size,
        )
        for index, volume in enumerate(volumes)
    )


def shared_volume_notes(disk: DiskTierSpec) -> tuple[str, ...]:
    """What to know of LMCache on volumes that outlive the pod: it never reads what an earlier pod wrote."""
    if not any(volume.persistent_volume_claim or volume.host_path for volume in disk_volumes(disk)):
        return ()
    return (
        "each pod leaves its folder on the disk volume when it goes; emptyDir and ephemeral go with the pod",
    )


def volume_bytes(payload_bytes: int) -> int:
    """Size of a volume that holds `payload_bytes` of blocks: a tenth more, rounded up to a MiB.

    ext4 reserves 5 percent for root and spends 1.6 percent on inodes by default (mke2fs(8), `-m`,
    inode_size and inode_ratio); the rest is for directories and for files rounded up to 4 KiB blocks.
    """
    return ceil_div(payload_bytes * 11, 10 * MIB) * MIB
