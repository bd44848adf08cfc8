"""Backend Native: vLLM's own OffloadingConnector, with vLLM's filesystem tier below it."""

import hashlib
from typing import Any, Final

from kvtier_common.tier import Tier
from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.engine import Device
from kvtier_operator.planning.backends.parts import Share, disk_mounts, index_bytes_per_rank, transfer_args
from kvtier_operator.planning.backends.traits import (
    BackendTraits,
    Caveat,
    CpuTraits,
    DiskTraits,
    Folder,
    NeedsGPU,
    TierPlace,
)
from kvtier_operator.planning.base.tier_plan import BackendPlan
from kvtier_operator.planning.images import ImageName
from kvtier_operator.planning.model_shape.block_tokens import engine_block_tokens
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.units import ceil_div, size

_INDEX_BYTES_PER_ENTRY: Final = 600
"""Of vLLM's LRU index (v1/kv_offload/cpu/policies/lru.py): 515 to 593 bytes an entry measured under 0.32."""

_DISK_TOKENS_PER_FILE: Final = 256
"""llm-d, guides/tiered-prefix-cache, native/fs. Smaller files cost more lookups."""


TRAITS: Final = BackendTraits(
    title="vLLM's own offloading",
    project="vLLM",
    images={Device.CUDA: ImageName.VLLM, Device.CPU: ImageName.VLLM_CPU},
    # vLLM 0.32 and 0.33; a region on hugetlbfs is an open pull request (#45693)
    cpu=CpuTraits(place=TierPlace.SHM),
    disk=DiskTraits(
        folder=Folder.SHARED,
        caveat=Caveat(
            "DiskUnbounded",
            "vLLM's fs tier deletes nothing and checks nothing it reads: spec.tiers.disk.capacity bounds the "
            "volume only, and a full one stops caching; clean the folder yourself, or use a volume that goes "
            "with the pod",
            "deletes nothing there",
        ),
        direct_io=False,
    ),
    offloading=True,
    # vllm/v1/kv_offload/cpu/spec.py, get_worker
    needs_gpu=NeedsGPU("vLLM's own offloading refuses it", starts=False),
    bench_side="vllm",
)


def plan(spec: Spec, geometry: Geometry) -> BackendPlan:
    """The tier as one engine's `cpu_bytes_to_use`: all ranks together, once for MLA.

    Sources, the same in 0.32 and 0.33: vllm/v1/kv_offload/cpu/spec.py (`num_chunks = cpu_bytes_to_use //
    bytes of a chunk of all ranks`), cpu/shared_offload_region.py (one region of that size in /dev/shm,
    touched at start), tiering/spec.py and tiering/fs/manager.py, and distributed/kv_transfer/kv_connector/v1/
    offloading/config.py (`blocks_per_chunk`).
    """
    share = Share.of(spec)
    extra: dict[str, Any] = {"cpu_bytes_to_use": share.cpu_bytes}
    mounts = disk_mounts(spec.tiers.disk)
    single = not mounts or geometry.keeps_states
    blocks_per_chunk = 1 if single else ceil_div(_DISK_TOKENS_PER_FILE, geometry.whole_block_tokens)
    tokens_per_chunk = blocks_per_chunk * geometry.whole_block_tokens
    if mounts:
        extra |= {
            "spec_name": "TieringOffloadingSpec",
            # vLLM takes `block_size`, in tokens, only where all groups of layers have the same block
            "blocks_per_chunk": blocks_per_chunk,
            "secondary_tiers": [
                {"type": "fs", "root_dir": f"{mounts[0].mount_path}/native/{_namespace(spec)}"}
            ],
        }
    config = {
        "kv_connector": "OffloadingConnector",
        "kv_role": "kv_both",
        "kv_connector_extra_config": extra,
    }
    return BackendPlan(
        args=transfer_args(config),
        mounts=mounts,
        shm_bytes=share.cpu_bytes * share.engines,
        per_rank_overhead_bytes=index_bytes_per_rank(
            geometry, share, tokens_per_chunk, _INDEX_BYTES_PER_ENTRY
        ),
        bytes_per_rank={
            Tier.CPU: share.cpu_bytes // share.ranks_per_engine,
            Tier.DISK: share.disk_bytes // share.ranks_per_engine,
        },
        tokens_per_chunk=tokens_per_chunk,
        # shared_offload_region.py: BLOCK_SIZE_ALIGNMENT is the machine's page
        chunk_alignment_bytes=spec.engine.host_page_bytes,
        notes=_notes(spec),
    )


def _namespace(spec: Spec) -> str:
    """Hash of what changes KV bytes and vLLM's own folder name leaves out.

    vllm/v1/kv_offload/file_mapper.py names the model, dtype, block size and parallel sizes, but no revision,
    weights, KV dtype or overrides (vLLM #49261, #55904, #56311); sharing a folder then gives wrong tokens.
    """
    engine = spec.engine
    parts = [
        spec.model.name,
        spec.model.revision or "",
        engine.image or "",
        engine.kv_cache_dtype,
        str(engine.tensor_parallel_size),
        str(engine_block_tokens(engine)),
        *engine.extra_args.words,
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def _notes(spec: Spec) -> tuple[str, ...]:
    page = size(spec.engine.host_page_bytes)
    notes = [f"backend Native keeps the tier in /dev/shm, on {page} pages, and every rank pins all of it"]
    disk = spec.tiers.disk
    if disk is not None and (disk.volume.persistent_volume_claim or disk.volume.host_path):
        notes.append(
            "backend Native shares its disk folder among the pods that mount it, and its blocks carry no "
            "checksum; weights that change under the same revision need an empty folder"
        )
    return tuple(notes)
