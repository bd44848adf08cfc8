"""What several backends have in common: shares of ranks, pages, folders on disk, transfers."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Self

from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.pod import Volume
from kvtier_operator.api.spec.tiers.cpu import CpuTierSpec, HugepageSize, Policy
from kvtier_operator.api.spec.tiers.disk import DiskTierSpec
from kvtier_operator.planning.base.container_parts import Mount, volume_source
from kvtier_operator.planning.base.tier_plan import HugepagesPlan
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.units import GIB, MIB, ceil_div


@dataclass(frozen=True, slots=True)
class Share:
    """Engines and ranks of one pod, and what each engine gets of a tier.

    A pod runs `dataParallelSize` engines of `tensorParallelSize` ranks. Each engine keeps a cache of its
    own, so a tier's capacity, which is the pod's, is divided by the engines first.
    """

    engines: int  # engines in the pod
    ranks_per_engine: int  # ranks that share each layer
    cpu_bytes: int  # CPU tier of one engine
    disk_bytes: int  # disk tier of one engine; 0 without one

    @classmethod
    def of(cls, spec: Spec) -> Self:
        """The shares that `spec` asks for."""
        engines = spec.engine.data_parallel_size
        cpu, disk = spec.tiers.cpu, spec.tiers.disk
        return cls(
            engines=engines,
            ranks_per_engine=spec.engine.tensor_parallel_size,
            cpu_bytes=cpu.capacity.bytes // engines,
            disk_bytes=disk.capacity.bytes // engines if disk else 0,
        )

    @property
    def ranks(self) -> int:
        """Ranks in the pod."""
        return self.engines * self.ranks_per_engine


def round_down(size: int, step: int) -> int:
    """The largest multiple of `step` that is not above `size`, but at least one `step`."""
    return max(size // step, 1) * step


def gib(size: int) -> float:
    """`size` in GiB. Exact for whole MiB: the quotient is a fraction of few bits."""
    return size / GIB


def gib_text(size: int) -> str:
    """`size`, whole MiB, in GiB as a plain decimal number with a point: never `4Gi`, never `1e-03`."""
    text = format(Decimal(size) / GIB, "f")
    return text if "." in text else f"{text}.0"


def index_bytes_per_rank(
    geometry: Geometry, share: Share, tokens_per_entry: int, bytes_per_entry: int
) -> int:
    """Memory of the scheduler's index of the CPU tier, spread over the ranks of its engine.

    One engine's scheduler keeps one entry for each chunk of `tokens_per_entry` tokens.
    """
    entries = share.cpu_bytes // (tokens_per_entry * geometry.kv_bytes_per_token)
    return ceil_div(entries * bytes_per_entry, share.ranks_per_engine)


PREFER_NOTE: Final = (
    "hugepages.policy Prefer: a pod cannot prefer explicit huge pages, it can only require them, so the pod "
    "requests none and the tier falls back to ordinary pages; use Require where the nodes have them"
)


def page_bytes(cpu: CpuTierSpec) -> int:
    """Size of one explicit huge page that the tier asks for; 2 MiB where it names none."""
    return (cpu.hugepages.page_size or HugepageSize.TWO_MIB).bytes


def preferred_pages(cpu: CpuTierSpec, bytes_per_rank: int, ranks: int) -> HugepagesPlan:
    """Pages that backend KVTier takes where there are any, every rank rounded up to a page."""
    size = page_bytes(cpu)
    return HugepagesPlan(page_bytes=size, pages=ceil_div(bytes_per_rank, size) * ranks)


def required_pages(cpu: CpuTierSpec, slice_bytes: Iterable[int]) -> HugepagesPlan | None:
    """Pages that the pod requests, every slice of the tier rounded up to a page; None unless required.

    Kubernetes schedules a pod that requests huge pages only where they are free, and caps one that
    requests none at 0 (kubernetes/kubernetes #71233): there is no way to say `if there are any`.
    """
    if cpu.hugepages.policy is not Policy.REQUIRE:
        return None
    size = page_bytes(cpu)
    return HugepagesPlan(page_bytes=size, pages=sum(ceil_div(part, size) for part in slice_bytes))


VOLUME_NAME: Final = "kv-disk"
MOUNT_ROOT: Final = "/var/lib/kvtier/disk"


def disk_volumes(disk: DiskTierSpec) -> tuple[Volume, ...]:
    """All volumes of the tier, in the order of the resource."""
    return (disk.volume, *disk.extra_volumes)


def disk_mounts(disk: DiskTierSpec | None, payload_bytes: int | None = None) -> tuple[Mount, ...]:
    """One mount a volume of the tier, in their order; each holds its share of the capacity where not said."""
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


TRANSFER_ARGUMENT: Final = "--kv-transfer-config"


def transfer_args(config: Mapping[str, Any]) -> tuple[str, str]:
    """The argument and its JSON value, without spaces, keys in the order given.

    Source: vllm/config/kv_transfer.py, KVTransferConfig (0.32 and 0.33).
    """
    return TRANSFER_ARGUMENT, json.dumps(config, separators=(",", ":"))
