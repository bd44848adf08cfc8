"""Backend KVTier: kvtier's own connector."""

from collections.abc import Sequence
from typing import Any, Final

from kvtier_common.tier import Tier
from kvtier_connector.config import (
    CUDA_CHUNK_TOKENS,
    DISK_ALIGNMENT_BYTES,
    DISK_SPARE_BYTES,
    DISK_WRITE_SHARE,
    KEY_BYTES,
    REMOTE_SCHEMES,
    ConnectorConfig,
    disk_beside_bytes,
    disk_slots,
    kv_transfer_config,
)
from kvtier_connector.config import Policy as ConnectorPolicy
from kvtier_connector.payload import (
    CONTROL_PATH,
    CONTROL_VARIABLE,
    PREFIXES_VARIABLE,
    PREFIXES_WITHIN_VARIABLE,
)
from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.engine import Device
from kvtier_operator.api.spec.tiers.cpu import HugepageSize, Policy
from kvtier_operator.api.spec.tiers.remote import RemoteEngine
from kvtier_operator.planning.backends.parts import (
    PREFER_NOTE,
    Share,
    disk_mounts,
    index_bytes_per_rank,
    page_bytes,
    required_pages,
    transfer_args,
)
from kvtier_operator.planning.backends.traits import (
    BackendTraits,
    CpuTraits,
    DiskTraits,
    Folder,
    RemoteTraits,
    TierPlace,
)
from kvtier_operator.planning.base.container_parts import Mount
from kvtier_operator.planning.base.devices import not_tested
from kvtier_operator.planning.base.kept import kept_settings
from kvtier_operator.planning.base.remote_store import (
    ca_path,
    connections,
    costs_of,
    credentials_path,
    mac_key_path,
    secret_mounts,
)
from kvtier_operator.planning.base.tier_plan import BackendPlan, TierChunks
from kvtier_operator.planning.images import ImageName
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.units import ceil_div, count, many, round_up, size

# Source: kvtier_connector.config; a chunk's parts are aligned one by one (core.slots).
FOLDER: Final = "kvtier"
"""Of the tier in its volume."""
DISK_INDEX_BYTES_PER_CHUNK: Final = 800
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


def remote_settings(spec: Spec) -> dict[str, Any]:
    """Settings of kvtier_connector.config for one engine's way to the remote tier; none without one.

    A bound on writes is one engine's part of the pod's. No secret is among them: the connector reads files.
    """
    remote = spec.tiers.remote
    if remote is None or remote.scheme not in REMOTE_SCHEMES or remote.url is None:
        return {}
    bound = remote.write_bytes_per_second
    return {
        "remote_url": remote.url,
        "remote_share": remote.share_as or "",
        "remote_capacity_bytes": remote.capacity.bytes,
        "remote_credentials_path": credentials_path(remote),
        "remote_ca_path": ca_path(remote),
        "remote_mac_key_path": mac_key_path(remote),
        "remote_connections": connections(spec, remote),
        # of at least a byte: the connector takes 0 for no bound
        "remote_write_bytes_per_s": max(bound.bytes // spec.engine.data_parallel_size, 1) if bound else 0,
        "remote_ttl_s": remote.ttl_seconds or 0,
        # how pods of others come by their weights is not known: as copies, at worst
        "remote_weights_read": spec.served_model is None or spec.model.is_copied,
    }


def store_client_bytes(spec: Spec) -> int:
    """What one engine's connections to the remote tier take of its pod's memory."""
    remote = spec.tiers.remote
    return connections(spec, remote) * costs_of(remote).client_bytes if remote else 0


def disk_chunks(spec: Spec, geometry: Geometry, chunk_tokens: int, alignment_bytes: int) -> TierChunks | None:
    """What one engine's disk tier holds, in chunks that all its ranks round up; None without one."""
    if spec.tiers.disk is None:
        return None
    capacity_bytes = Share.of(spec).disk_bytes
    chunk_bytes = ceil_div(geometry.kv_bytes_per_token * chunk_tokens, alignment_bytes) * alignment_bytes
    beside_bytes = disk_beside_bytes(chunk_bytes, KEY_BYTES)
    chunks = disk_slots(capacity_bytes, chunk_bytes, KEY_BYTES)
    return TierChunks(
        chunks=chunks,
        how=f"({size(capacity_bytes)} - {size(DISK_SPARE_BYTES)}) / ({count(chunk_bytes)} B + "
        f"{count(beside_bytes)} B of index and extents)",
        memory_bytes=chunks * DISK_INDEX_BYTES_PER_CHUNK,
        read_s=ceil_div(chunks, _CHUNKS_READ_PER_S),
    )


INDEX_BYTES_PER_CHUNK: Final = 100
"""What kvtier_connector.core.index.index may take at most for a block."""

TRAITS: Final = BackendTraits(
    title="kvtier's connector",
    project="kvtier",
    images={Device.GPU: ImageName.VLLM, Device.CPU: ImageName.VLLM_CPU},
    cpu=CpuTraits(
        place=TierPlace.ENGINE,
        page_sizes=frozenset(HugepageSize),
        falls_back=True,
    ),
    # kvtier_connector.core.disk: `folder` locks it, `tier` keeps what waits in a part of the CPU tier
    disk=DiskTraits(folder=Folder.OWN, keeps_adapters=False, waiting_share=DISK_WRITE_SHARE),
    remote=RemoteTraits(schemes=frozenset(REMOTE_SCHEMES), own_client=True, keeps_adapters=False),
    in_payload=True,
    refuses_other_minors=True,
    offloading=True,
    blocks_outermost=True,
    bench_side="kvtier",
    reserved_env={
        CONTROL_VARIABLE: "the control socket is where its verbs look for it",
        PREFIXES_VARIABLE: "it derives it from spec.prefixes",
        PREFIXES_WITHIN_VARIABLE: "it derives it from spec.prefixesWithin",
    },
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
        layered_loads=cpu.layered_loads is not False,
        blocks_per_chunk=blocks_per_chunk,
        **disk_settings(spec, mounts),
        **remote_settings(spec),
        **kept_settings(spec, CONTROL_PATH),
    )
    remote_bytes = store_client_bytes(spec)
    by_driver = spec.engine.device is Device.GPU and not not_tested(spec)
    return BackendPlan(
        args=transfer_args(kv_transfer_config(config)),
        mounts=mounts,
        secrets=secret_mounts(spec.tiers.remote),
        tier_memory_bytes=0 if hugepages else engine_bytes * share.engines,
        page_locked=by_driver and cpu.memlock.policy is not Policy.NEVER,
        per_rank_overhead_bytes=index_bytes_per_rank(geometry, share, chunk_tokens, INDEX_BYTES_PER_CHUNK)
        + ceil_div(disk_index_bytes + remote_bytes, share.ranks_per_engine),
        bytes_per_rank={
            Tier.CPU: engine_bytes // share.ranks_per_engine,
            Tier.DISK: share.disk_bytes // share.ranks_per_engine,
        },
        chunks={Tier.DISK: chunks} if chunks else {},
        hugepages=hugepages,
        tokens_per_chunk=chunk_tokens,
        chunk_alignment_bytes=alignment_bytes,
        notes=_notes(spec),
    )


def _notes(spec: Spec) -> tuple[str, ...]:
    prefer = (PREFER_NOTE,) if spec.tiers.cpu.hugepages.policy is Policy.PREFER else ()
    remote = spec.tiers.remote
    if remote is None or remote.engine is not RemoteEngine.MOONCAKE:
        return prefer
    clients = many(connections(spec, remote), "client")
    mooncake = (
        f"backend KVTier runs {clients} of Mooncake beside each engine, which lend the store no memory and "
        f"take {size(store_client_bytes(spec))} of the pod's; the image must have the package mooncake: "
        "without it engines serve, and have no store"
    )
    return (*prefer, mooncake)


def _blocks_per_chunk(spec: Spec, geometry: Geometry) -> int:
    if spec.engine.device is Device.CPU or geometry.keeps_states:
        return 1
    return max(CUDA_CHUNK_TOKENS // geometry.whole_block_tokens, 1)
