"""Backend KVTier: kvtier's own connector."""

from typing import Final

from kvtier_connector.config import ConnectorConfig, kv_transfer_config
from kvtier_connector.config import Policy as ConnectorPolicy
from kvtier_operator.api.engine import Device
from kvtier_operator.api.resource import Spec
from kvtier_operator.api.tiers import CpuTier, Policy
from kvtier_operator.planning import images
from kvtier_operator.planning.backends.pages import PREFER_NOTE, page_bytes, required_pages
from kvtier_operator.planning.backends.share import Share, index_bytes_per_rank
from kvtier_operator.planning.backends.transfer import transfer_args
from kvtier_operator.planning.geometry import Geometry
from kvtier_operator.planning.plan import BackendPlan
from kvtier_operator.planning.units import round_up

NO_DISK_NOTE: Final = "backend KVTier: tiers.disk is not yet served by this release"

_INDEX_BYTES_PER_ENTRY: Final = 100
"""What kvtier_connector.core.index may take at most for a block."""

_CUDA_CHUNK_TOKENS: Final = 64
"""kvtier_connector.config, `blocks_per_chunk`: 64 tokens suit GPUs, whose copies want large pages."""


def plan_kvtier(spec: Spec, geometry: Geometry) -> BackendPlan:
    """One region an engine, a slice for each rank (one slice where the cache is an MLA latent).

    Source of the settings: kvtier_connector.config; of the slices: kvtier_connector.core.region.
    """
    cpu = spec.tiers.cpu
    if cpu is None:
        return BackendPlan(notes=(NO_DISK_NOTE,))
    share = Share.of(spec)
    slices = 1 if geometry.mla else share.ranks_per_engine
    slice_bytes = share.cpu_bytes // slices
    if cpu.hugepages.policy is Policy.REQUIRE:
        slice_bytes = round_up(slice_bytes, page_bytes(cpu))
    engine_bytes = slice_bytes * slices
    hugepages = required_pages(cpu, [slice_bytes] * (slices * share.engines))
    blocks_per_chunk = _blocks_per_chunk(spec, geometry)
    config = ConnectorConfig(
        cpu_capacity_bytes=engine_bytes,
        hugepages=ConnectorPolicy(cpu.hugepages.policy),
        hugepage_bytes=page_bytes(cpu),
        memlock=ConnectorPolicy(cpu.memlock.policy),
        blocks_per_chunk=blocks_per_chunk,
    )
    return BackendPlan(
        args=transfer_args(kv_transfer_config(config)),
        image=images.kvtier_engine(spec.engine.device),
        pinned_bytes=0 if hugepages else engine_bytes * share.engines,
        per_rank_overhead_bytes=index_bytes_per_rank(
            geometry, share, blocks_per_chunk * geometry.block_tokens, _INDEX_BYTES_PER_ENTRY
        ),
        cpu_bytes_per_rank=engine_bytes // share.ranks_per_engine,
        hugepages=hugepages,
        tokens_per_chunk=blocks_per_chunk * geometry.block_tokens,
        notes=_notes(spec, cpu),
    )


def _blocks_per_chunk(spec: Spec, geometry: Geometry) -> int:
    if spec.engine.device is Device.CPU:
        return 1
    return max(_CUDA_CHUNK_TOKENS // geometry.block_tokens, 1)


def _notes(spec: Spec, cpu: CpuTier) -> tuple[str, ...]:
    notes = []
    if cpu.hugepages.policy is Policy.PREFER:
        notes.append(PREFER_NOTE)
    if spec.tiers.disk is not None:
        notes.append(NO_DISK_NOTE)
    return tuple(notes)
