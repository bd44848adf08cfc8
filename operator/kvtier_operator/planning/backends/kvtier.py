"""Backend KVTier: kvtier's own connector."""

from typing import Final

from kvtier_common.tier import Tier
from kvtier_connector.config import (
    DISK_ALIGNMENT_BYTES,
    DISK_WRITE_SHARE,
    ConnectorConfig,
    kv_transfer_config,
)
from kvtier_connector.config import Policy as ConnectorPolicy
from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.engine import Device
from kvtier_operator.api.spec.tiers import HugepageSize, Policy
from kvtier_operator.planning.backends.backend_plan import BackendPlan
from kvtier_operator.planning.backends.kvtier_disk import disk_chunks, disk_settings
from kvtier_operator.planning.backends.parts.disk import disk_mounts
from kvtier_operator.planning.backends.parts.pages import PREFER_NOTE, page_bytes, required_pages
from kvtier_operator.planning.backends.parts.share import Share, index_bytes_per_rank
from kvtier_operator.planning.backends.parts.transfer import transfer_args
from kvtier_operator.planning.backends.traits import BackendTraits, CpuTraits, DiskTraits, Folder, TierPlace
from kvtier_operator.planning.kv_cache.geometry import Geometry
from kvtier_operator.planning.pod.devices import not_tested
from kvtier_operator.planning.pod.images.published import ImageName
from kvtier_operator.planning.units import ceil_div, round_up

_INDEX_BYTES_PER_ENTRY: Final = 100
"""What kvtier_connector.core.index.index may take at most for a block."""

_CUDA_CHUNK_TOKENS: Final = 64
"""kvtier_connector.config, `blocks_per_chunk`: 64 tokens suit GPUs, whose copies want large pages."""


TRAITS: Final = BackendTraits(
    title="kvtier's connector",
    project="kvtier",
    images={Device.CUDA: ImageName.ENGINE, Device.CPU: ImageName.ENGINE_CPU},
    cpu=CpuTraits(
        place=TierPlace.ENGINE,
        page_sizes=frozenset({HugepageSize.TWO_MIB, HugepageSize.ONE_GIB}),
        falls_back=True,
        locks=True,
    ),
    # kvtier_connector.core.disk: `folder` locks it, `tier` keeps what waits in a part of the CPU tier
    disk=DiskTraits(folder=Folder.OWN, waiting_share=DISK_WRITE_SHARE, measures=True),
    in_published_images=False,
    refuses_other_minors=True,
    offloading=True,
    blocks_outermost=True,
    bench_side="kvtier",
)


def plan(spec: Spec, geometry: Geometry) -> BackendPlan:
    """One region an engine, a slice for each rank (one slice where the cache is an MLA latent).

    With a disk tier the region is shared with the process that reads and writes the disk, which changes
    nothing for the pod's memory: a memfd is charged to it as anonymous memory is.

    Source of the settings: kvtier_connector.config; of the slices: kvtier_connector.core.region.region.
    """
    cpu, disk = spec.tiers.cpu, spec.tiers.disk
    share = Share.of(spec)
    slices = 1 if geometry.stored_once else share.ranks_per_engine
    slice_bytes = max(share.cpu_bytes // slices, 1)  # too small for anything, which a check says
    if cpu.hugepages.policy is Policy.REQUIRE:
        slice_bytes = round_up(slice_bytes, page_bytes(cpu))
    engine_bytes = slice_bytes * slices
    hugepages = required_pages(cpu, [slice_bytes] * (slices * share.engines))
    blocks_per_chunk = _blocks_per_chunk(spec, geometry)
    chunk_tokens = blocks_per_chunk * geometry.whole_block_tokens
    alignment_bytes = DISK_ALIGNMENT_BYTES * (slices if disk else 1)
    mounts = disk_mounts(disk)
    chunks = disk_chunks(spec, geometry, chunk_tokens, alignment_bytes)
    disk_index_bytes = chunks.memory_bytes if chunks else 0
    config = ConnectorConfig(
        cpu_capacity_bytes=engine_bytes,
        hugepages=ConnectorPolicy(cpu.hugepages.policy),
        hugepage_bytes=page_bytes(cpu),
        memlock=ConnectorPolicy(cpu.memlock.policy),
        blocks_per_chunk=blocks_per_chunk,
        **disk_settings(spec, mounts),
    )
    by_driver = spec.engine.device is Device.CUDA and not not_tested(spec)
    return BackendPlan(
        args=transfer_args(kv_transfer_config(config)),
        mounts=mounts,
        tier_memory_bytes=0 if hugepages else engine_bytes * share.engines,
        page_locked=by_driver and cpu.memlock.policy is not Policy.OFF,
        per_rank_overhead_bytes=index_bytes_per_rank(geometry, share, chunk_tokens, _INDEX_BYTES_PER_ENTRY)
        + ceil_div(disk_index_bytes, share.ranks_per_engine),
        bytes_per_rank={
            Tier.CPU: engine_bytes // share.ranks_per_engine,
            Tier.DISK: share.disk_bytes // share.ranks_per_engine,
        },
        disk_chunks=chunks,
        hugepages=hugepages,
        tokens_per_chunk=chunk_tokens,
        chunk_alignment_bytes=alignment_bytes,
        notes=(PREFER_NOTE,) if cpu.hugepages.policy is Policy.PREFER else (),
    )


def _blocks_per_chunk(spec: Spec, geometry: Geometry) -> int:
    if spec.engine.device is Device.CPU or geometry.keeps_states:
        return 1
    return max(_CUDA_CHUNK_TOKENS // geometry.whole_block_tokens, 1)
