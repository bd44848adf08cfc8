"""The disk tier of backend KVTier: its folder, and how many chunks fit a capacity that holds its index too.

Source: kvtier_connector.config; a chunk's parts are aligned one by one (core.slots).
"""

from collections.abc import Sequence
from typing import Any, Final

from kvtier_connector.config import DISK_SPARE_BYTES, KEY_BYTES, disk_beside_bytes, disk_slots
from kvtier_operator.api.resource import Spec
from kvtier_operator.planning.backends.parts.share import Share
from kvtier_operator.planning.base.backend_plan import DiskChunks
from kvtier_operator.planning.base.container_parts import Mount
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.units import ceil_div, count, size

FOLDER: Final = "kvtier"
"""Of the tier in its volume."""
_MEMORY_BYTES_PER_CHUNK: Final = 800
"""At most, while an index that has been written four times over is read at start: 778 measured at 400,000
chunks, of which 162 stay."""
_CHUNKS_READ_PER_S: Final = 200_000
"""Of the same index: 400,000 chunks in 1.9 s on two busy cores."""


def disk_settings(spec: Spec, mounts: Sequence[Mount]) -> dict[str, Any]:
    """Settings of kvtier_connector.config for one engine's part of the disk tier; none without one.

    All engines of a pod are given the same folder: the connector itself appends `replica-1` and so on to it
    for data-parallel engines after the first. A capacity and a bound are one engine's.
    """
    disk = spec.tiers.disk
    if disk is None:
        return {}
    share = Share.of(spec)
    # of at least a byte: the connector takes 0 for no bound
    bound = disk.writes_per_hour
    wear = {"disk_write_bytes_per_hour": max(bound.bytes // share.engines, 1)} if bound else {}
    return {
        "disk_path": f"{mounts[0].mount_path}/{FOLDER}",
        # a tier of nothing is none, and whoever wants one is told by a check
        "disk_capacity_bytes": max(share.disk_bytes, 1),
        "disk_direct_io": disk.direct_io,
        **wear,
    }


def disk_chunks(spec: Spec, geometry: Geometry, chunk_tokens: int, alignment_bytes: int) -> DiskChunks | None:
    """What one engine's disk tier holds; None without one.

    Args:
        spec: What is wanted.
        geometry: KV geometry of one engine.
        chunk_tokens: Tokens of a chunk.
        alignment_bytes: What a chunk is rounded up to, all ranks of one engine.
    """
    if spec.tiers.disk is None:
        return None
    capacity_bytes = Share.of(spec).disk_bytes
    chunk_bytes = ceil_div(geometry.kv_bytes_per_token * chunk_tokens, alignment_bytes) * alignment_bytes
    beside_bytes = disk_beside_bytes(chunk_bytes, KEY_BYTES)
    chunks = disk_slots(capacity_bytes, chunk_bytes, KEY_BYTES)
    return DiskChunks(
        chunks=chunks,
        how=f"({size(capacity_bytes)} - {size(DISK_SPARE_BYTES)}) / ({count(chunk_bytes)} B + "
        f"{count(beside_bytes)} B of index and extents)",
        memory_bytes=chunks * _MEMORY_BYTES_PER_CHUNK,
        read_s=ceil_div(chunks, _CHUNKS_READ_PER_S),
    )
