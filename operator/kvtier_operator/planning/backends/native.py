"""Backend Native: vLLM's own OffloadingConnector, with vLLM's tiers of files and of objects below it."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from kvtier_common.tier import Tier
from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.engine import Device
from kvtier_operator.api.spec.tiers.remote import RemoteTierSpec
from kvtier_operator.planning.backends.parts import Share, disk_mounts, index_bytes_per_rank, transfer_args
from kvtier_operator.planning.backends.store_access import (
    S3,
    Bucket,
    held_chunks,
    s3_variables,
)
from kvtier_operator.planning.backends.traits import (
    BackendTraits,
    Caveat,
    CpuTraits,
    DiskTraits,
    Folder,
    NeedsGPU,
    RemoteTraits,
    RemoteUse,
    TierPlace,
)
from kvtier_operator.planning.base.remote_store import ca_mounts, ca_path
from kvtier_operator.planning.base.tier_plan import BackendPlan, TierChunks
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
    images={Device.GPU: ImageName.VLLM, Device.CPU: ImageName.VLLM_CPU},
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
    remote=RemoteTraits(
        schemes=frozenset((S3,)),
        cannot={
            RemoteUse.MAC_KEY: "believes what the bucket gives; remove macKey, and let engines alone write",
            RemoteUse.WRITE_BOUND: "writes all that it computes; remove writeBytesPerSecond",
            RemoteUse.TTL: "lets nothing expire; remove ttlSeconds, and give the bucket a rule",
        },
        caveat=Caveat(
            "RemoteUnbounded",
            "vLLM's obj tier deletes nothing and checks nothing it reads: spec.tiers.remote.capacity is only "
            "counted with; give the bucket a lifecycle rule that keeps to it, and engines alone the right to "
            "write there",
            "lets the bucket grow",
        ),
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
    remote = spec.tiers.remote
    mounts = disk_mounts(spec.tiers.disk)
    single = not (mounts or remote) or geometry.keeps_states
    blocks_per_chunk = 1 if single else ceil_div(_DISK_TOKENS_PER_FILE, geometry.whole_block_tokens)
    tokens_per_chunk = blocks_per_chunk * geometry.whole_block_tokens
    # in the order in which they are asked
    behind: list[dict[str, Any]] = []
    if mounts:
        behind.append({"type": "fs", "root_dir": f"{mounts[0].mount_path}/native/{_namespace(spec)}"})
    if remote:
        behind.append(_object_tier(remote, f"{_namespace(spec)}-{blocks_per_chunk}"))
    if behind:
        extra |= {
            "spec_name": "TieringOffloadingSpec",
            # vLLM takes `block_size`, in tokens, only where all groups of layers have the same block
            "blocks_per_chunk": blocks_per_chunk,
            "secondary_tiers": behind,
        }
    config = {
        "kv_connector": "OffloadingConnector",
        "kv_role": "kv_both",
        "kv_connector_extra_config": extra,
    }
    return BackendPlan(
        args=transfer_args(config),
        env_from=s3_variables(remote) if remote else (),
        mounts=mounts,
        secrets=ca_mounts(remote),
        shm_bytes=share.cpu_bytes * share.engines,
        per_rank_overhead_bytes=index_bytes_per_rank(
            geometry, share, tokens_per_chunk, _INDEX_BYTES_PER_ENTRY
        ),
        bytes_per_rank={
            Tier.CPU: share.cpu_bytes // share.ranks_per_engine,
            Tier.DISK: share.disk_bytes // share.ranks_per_engine,
        },
        chunks=_remote_chunks(remote, tokens_per_chunk * geometry.kv_bytes_per_token),
        tokens_per_chunk=tokens_per_chunk,
        # shared_offload_region.py: BLOCK_SIZE_ALIGNMENT is the machine's page
        chunk_alignment_bytes=spec.engine.host_page_bytes,
        notes=_notes(spec),
    )


def _remote_chunks(remote: RemoteTierSpec | None, chunk_bytes: int) -> Mapping[Tier, TierChunks]:
    return {} if remote is None else {Tier.REMOTE: held_chunks(remote, chunk_bytes, 1)}


def _object_tier(remote: RemoteTierSpec, namespace: str) -> dict[str, Any]:
    """The tier of objects that NIXL moves; the AWS SDK in it reads a key from the environment.

    Sources, the same in 0.32 and 0.33: vllm/v1/kv_offload/tiering/obj/config.py (ObjStoreConfig) and
    manager.py (`prefix`, `io_threads`). 0.32 names objects without their number of blocks, so the prefix
    does.
    """
    bucket = Bucket.of(remote)
    store = {
        "bucket": bucket.name,
        "endpoint_override": bucket.endpoint,
        "scheme": bucket.scheme,
        "region": bucket.region,
        **({"ca_bundle": ca_path(remote)} if remote.tls else {}),
    }
    prefix = "/".join(filter(None, (bucket.prefix, remote.share_as, namespace)))
    threads = {"io_threads": remote.connections} if remote.connections else {}
    return {"type": "obj", "store_config": store, "prefix": prefix, **threads}


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
