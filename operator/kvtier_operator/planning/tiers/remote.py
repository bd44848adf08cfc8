"""The remote tier: one store of all engines, read only where that pays, done without where it fails."""

from dataclasses import replace
from typing import Final

from kvtier_common.metrics import remote_tier
from kvtier_common.tier import Tier
from kvtier_operator.api.resource import Spec
from kvtier_operator.planning.base.tier_plan import BackendPlan, TierChunks
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.tiers import TierTraits
from kvtier_operator.planning.units import count, size

STORED_PERCENT: Final = 102
"""Of a block's bytes, what a Redis server counts for it in maxmemory: values cut so that they fit its
allocator's size classes, and their keys. Measured on Redis 7.0 and Valkey 9.1."""


def _serve(spec: Spec, geometry: Geometry, backend: BackendPlan) -> BackendPlan:
    """The store's bytes belong to no rank; it holds as many chunks as go into its capacity."""
    remote = spec.tiers.remote
    if remote is None:
        return backend
    chunk_bytes = backend.bytes_per_chunk or geometry.kv_bytes_per_token * backend.tokens_per_chunk
    held = TierChunks(
        chunks=remote.capacity.bytes * 100 // (chunk_bytes * STORED_PERCENT),
        how=f"{size(remote.capacity.bytes)} / ({count(chunk_bytes)} B x {STORED_PERCENT / 100:g})",
        memory_bytes=0,
        read_s=0,
    )
    return replace(
        backend,
        bytes_per_rank={**backend.bytes_per_rank, Tier.REMOTE: 0},
        chunks={**backend.chunks, Tier.REMOTE: held},
    )


TRAITS: Final = TierTraits(serve=_serve, degraded=remote_tier.DEGRADED, pays=remote_tier.PAYS)
