"""Backend LMCache: LMCache inside the engine's processes."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from kvtier_common.tier import Tier
from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.engine import Device
from kvtier_operator.api.spec.tiers.cpu import HugepageSize, Policy
from kvtier_operator.api.spec.tiers.remote import RemoteTierSpec
from kvtier_operator.planning.backends.parts import (
    Share,
    disk_mounts,
    disk_volumes,
    gib,
    gib_text,
    page_bytes,
    required_pages,
    round_down,
    shared_volume_notes,
    transfer_args,
)
from kvtier_operator.planning.backends.store_access import (
    LMCACHE_CANNOT,
    LMCACHE_CAVEAT,
    MOONCAKE,
    RESP_SCHEMES,
    S3,
    Bucket,
    held_chunks,
    host_and_port,
    resp_variables,
    s3_variables,
)
from kvtier_operator.planning.backends.traits import (
    BackendTraits,
    Caveat,
    CpuTraits,
    DiskTraits,
    Folder,
    NeedsGPU,
    NoHybridManager,
    RemoteTraits,
    TierPlace,
)
from kvtier_operator.planning.base.container_parts import ConfigFile
from kvtier_operator.planning.base.tier_plan import BackendPlan, TierChunks
from kvtier_operator.planning.images import ImageName
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.units import MIB, round_up

# Settings are written once and rendered as environment and as file.
# Source: lmcache 0.5.6, lmcache/v1/config.py (`_CONFIG_DEFINITIONS`): the file is read first and
# LMCACHE_<KEY> overrides it, so both forms must say the same. A size with a unit (`4Gi`) is warned about
# and dropped, an unknown key is ignored: only plain numbers and known keys may leave this file.
CONFIG_PATH: Final = "/etc/kvtier/lmcache.yaml"
ENV_PREFIX: Final = "LMCACHE_"
RESERVED_ENV: Final = {
    "LMCACHE_CONFIG_FILE": "kvtier writes that file",
    "LMCACHE_LOCAL_CPU": "it derives it from spec.tiers.cpu",
    "LMCACHE_MAX_LOCAL_CPU_SIZE": "it derives it from spec.tiers.cpu.capacity",
    "LMCACHE_LOCAL_DISK": "it derives it from spec.tiers.disk.volume",
    "LMCACHE_MAX_LOCAL_DISK_SIZE": "it derives it from spec.tiers.disk.capacity",
    "LMCACHE_LOCAL_CPU_USE_HUGEPAGES": "it derives it from spec.tiers.cpu.hugepages",
    "LMCACHE_CHUNK_SIZE": "the tiers' tokens are counted in these chunks",
    "LMCACHE_REMOTE_URL": "spec.tiers.remote.url makes it",
    "LMCACHE_REMOTE_SERDE": "the shared tier's tokens are counted in plain bytes",
    "LMCACHE_RESP_USERNAME": "spec.tiers.remote.credentials makes it",
    "LMCACHE_RESP_PASSWORD": "spec.tiers.remote.credentials makes it",
}
CHUNK_TOKENS: Final = 256
"""LMCache's default `chunk_size`."""


@dataclass(frozen=True, slots=True)
class RemoteSettings:
    """The shared tier of every rank's LMCache."""

    url: str  # never with a password: LMCache logs it, as it does extra_config
    extra_config: Mapping[str, Any]  # what else its client is told


@dataclass(frozen=True, slots=True)
class LMCacheSettings:
    """What one rank's LMCache is given."""

    cpu_bytes: int  # CPU buffer of one rank, whole MiB. The disk tier needs it too: blocks pass through it.
    hugepages: bool = False  # take the buffer from explicit 2 MiB pages
    # absolute folders, one for each rank of the pod; empty without a disk tier
    disk_paths: tuple[str, ...] = ()
    disk_bytes: int = 0  # disk tier of one rank, whole MiB
    direct_io: bool = False  # bypass the page cache
    remote: RemoteSettings | None = None  # the shared tier; None without one

    def values(self) -> Mapping[str, Any]:
        """Settings by LMCache's names, with sizes in GiB."""
        values: dict[str, Any] = {
            "chunk_size": CHUNK_TOKENS,
            "local_cpu": True,
            "max_local_cpu_size": gib(self.cpu_bytes),
        }
        if self.hugepages:
            values["local_cpu_use_hugepages"] = True
        if self.disk_paths:
            values["local_disk"] = ",".join(f"file://{path}" for path in self.disk_paths)
            values["max_local_disk_size"] = gib(self.disk_bytes)
            values["extra_config"] = {"use_odirect": self.direct_io}
        if self.remote is not None:
            # anything but naive packs or rounds what it writes
            values |= {"remote_url": self.remote.url, "remote_serde": "naive"}
            values["extra_config"] = values.get("extra_config", {}) | self.remote.extra_config
        return values

    def env(self) -> Mapping[str, str]:
        """The settings as LMCACHE_<KEY> variables."""
        sizes = {"max_local_cpu_size": self.cpu_bytes, "max_local_disk_size": self.disk_bytes}
        return {
            f"LMCACHE_{key.upper()}": gib_text(sizes[key]) if key in sizes else _text(value)
            for key, value in self.values().items()
        }

    def file(self) -> ConfigFile:
        """The settings as the file that LMCACHE_CONFIG_FILE names."""
        return ConfigFile(CONFIG_PATH, yaml.safe_dump(dict(self.values()), sort_keys=False))


def _text(value: Any) -> str:  # noqa: ANN401 - a setting's value, of whichever type LMCache gives it
    return json.dumps(value) if isinstance(value, dict) else str(value)


_OVERHEAD_BYTES_PER_RANK: Final = 512 * MIB
"""An allowance for LMCache's threads, its index and one chunk in flight on each; not measured."""
_MOONCAKE_BUFFER_BYTES: Final = 16 * MIB
"""Of one rank's client; chunks pass between the store and LMCache's own memory without it."""
_DISK_BLOCK_BYTES: Final = 4096
"""f_bsize of ext4 and xfs. LMCache writes a chunk that is not a multiple of it through the page cache
(lmcache/v1/storage_backend/local_disk_backend.py, write_file and read_file)."""


TRAITS: Final = BackendTraits(
    title="LMCache in the engine",
    project="LMCache",
    images=dict.fromkeys(Device, ImageName.LMCACHE),
    # lmcache 0.5.6: local_cpu_use_hugepages, 2 MiB only (#2643)
    cpu=CpuTraits(
        place=TierPlace.ENGINE, page_sizes=frozenset({HugepageSize.TWO_MIB}), pins_in_one_call=True
    ),
    disk=DiskTraits(
        folder=Folder.EMPTIED,
        caveat=Caveat(  # LMCache #1454, #2273
            "DiskColdAfterRestart",
            "LMCache's disk starts empty after every restart and never removes the files of an earlier one: "
            "choose it for size, not for warm restarts, which spec.backend KVTier has",
            "empties the folder before each start",
        ),
    ),
    # vllm/config/vllm.py, SupportsHMA: its connector does not
    no_hybrid_manager=NoHybridManager(
        for_states="KVTier or LMCacheMP",
        for_windows="KVTier keeps a window once a prefix, LMCacheMP a part with each chunk",
    ),
    remote=RemoteTraits(
        schemes=frozenset((*RESP_SCHEMES, MOONCAKE, S3)), cannot=LMCACHE_CANNOT, caveat=LMCACHE_CAVEAT
    ),
    needs_gpu=NeedsGPU("LMCache copies from GPUs only", starts=True),
    # lmcache 0.5.6, v1/token_database.py; vLLM #44250, LMCache #2961
    tells_adapters_apart=False,
    deprecated=Caveat(  # LMCache #4025, #5147
        "InProcessDeprecated",
        "LMCache deprecates its in-process connector for its server; set spec.backend to LMCacheMP or KVTier",
    ),
    package="lmcache",
    env_prefix=ENV_PREFIX,
    reserved_env=RESERVED_ENV,
)


def plan(spec: Spec, geometry: Geometry) -> BackendPlan:
    """LMCache's sizes are plain GiB, for one rank.

    Sources, lmcache 0.5.6: lmcache/v1/config.py, storage_backend/local_cpu_backend.py (each rank allocates
    max_local_cpu_size at start; for MLA only rank 0 stores, and only it allocates, cache_engine.py),
    storage_backend/path_sharder.py (a rank takes path number `device index mod paths`).
    """
    share = Share.of(spec)
    storing_ranks = len(_storing_ranks(geometry, share)) // share.engines
    settings = _settings(spec, share, storing_ranks)
    config = {
        "kv_connector": "LMCacheConnectorV1",
        "kv_role": "kv_both",
        "kv_load_failure_policy": "recompute",
    }
    env_from = _env_from(spec.tiers.remote, settings)
    composed = {variable["name"] for variable in env_from}
    engine_bytes = settings.cpu_bytes * storing_ranks
    hugepages = required_pages(spec.tiers.cpu, [settings.cpu_bytes] * (storing_ranks * share.engines))
    return BackendPlan(
        args=transfer_args(config),
        env={
            "LMCACHE_CONFIG_FILE": CONFIG_PATH,
            "LMCACHE_TRACK_USAGE": "false",
            **{name: value for name, value in settings.env().items() if name not in composed},
        },
        env_from=env_from,
        files=(settings.file(),),
        mounts=disk_mounts(
            spec.tiers.disk, _bytes_per_volume(spec, _storing_ranks(geometry, share), settings)
        ),
        tier_memory_bytes=0 if hugepages else engine_bytes * share.engines,
        per_rank_overhead_bytes=_OVERHEAD_BYTES_PER_RANK,
        bytes_per_rank={
            Tier.CPU: engine_bytes // share.ranks_per_engine,
            Tier.DISK: settings.disk_bytes * storing_ranks // share.ranks_per_engine,
        },
        chunks=_remote_chunks(spec.tiers.remote, geometry, storing_ranks),
        hugepages=hugepages,
        tokens_per_chunk=CHUNK_TOKENS,
        # its index starts empty, so that the files of an earlier run would add up (LMCache #1454)
        scratch_dirs=settings.disk_paths,
        notes=_notes(spec, geometry, share),
    )


def _remote_chunks(
    remote: RemoteTierSpec | None, geometry: Geometry, values: int
) -> Mapping[Tier, TierChunks]:
    if remote is None:
        return {}
    return {Tier.REMOTE: held_chunks(remote, CHUNK_TOKENS * geometry.kv_bytes_per_token, values)}


def _settings(spec: Spec, share: Share, storing_ranks: int) -> LMCacheSettings:
    cpu, disk = spec.tiers.cpu, spec.tiers.disk
    hugepages = cpu.hugepages.policy is Policy.REQUIRE
    cpu_bytes = share.cpu_bytes // storing_ranks
    cpu_bytes = round_up(cpu_bytes, page_bytes(cpu)) if hugepages else round_down(cpu_bytes, MIB)
    return LMCacheSettings(
        cpu_bytes=cpu_bytes,
        hugepages=hugepages,
        disk_paths=_disk_paths(spec, share),
        disk_bytes=round_down(share.disk_bytes // storing_ranks, MIB) if disk else 0,
        direct_io=disk.direct_io if disk else False,
        remote=_remote(spec.tiers.remote),
    )


def _remote(remote: RemoteTierSpec | None) -> RemoteSettings | None:
    """One store for all ranks of all engines, each of which has a client of its own.

    Sources, lmcache 0.5.6, v1/storage_backend/connector: redis_adapter.py, mooncakestore_connector.py,
    s3_adapter.py, and base_connector.py (`save_chunk_meta`, which all three want to be told).
    A Redis is reached by LMCache's own client (`resp://`), the only one that is not given its password in
    the URL. For MLA all ranks read what the first has written (remote_backend.py).
    """
    if remote is None:
        return None
    plain: dict[str, Any] = {"save_chunk_meta": False}
    if remote.scheme == S3:
        bucket = Bucket.of(remote)
        s3 = {"s3_region": bucket.region, "disable_tls": bucket.scheme == "http"}
        threads = {"s3_num_io_threads": remote.connections} if remote.connections else {}
        return RemoteSettings(f"s3://{bucket.host}", plain | s3 | threads)
    host, port = host_and_port(remote)
    if remote.scheme == MOONCAKE:
        return RemoteSettings(f"mooncakestore://{host}:{port}", plain | _mooncake(f"{host}:{port}"))
    threads = {"resp_num_threads": remote.connections} if remote.connections else {}
    return RemoteSettings(f"resp://{host}:{port}", plain | threads)


def _mooncake(master: str) -> dict[str, Any]:
    """A client that lends the store no memory; its buffer is for what has none of LMCache's own."""
    return {
        "mooncake_master_server_address": master,
        "mooncake_metadata_server": "P2PHANDSHAKE",
        "mooncake_protocol": "tcp",
        "mooncake_local_hostname": "localhost",
        "mooncake_global_segment_size": "0",
        "mooncake_local_buffer_size": str(_MOONCAKE_BUFFER_BYTES),
    }


def _env_from(remote: RemoteTierSpec | None, settings: LMCacheSettings) -> tuple[Mapping[str, Any], ...]:
    """Variables with a secret or the pod's address in them; the file has neither."""
    if remote is None or settings.remote is None:
        return ()
    if remote.scheme == S3:
        return s3_variables(remote)
    if remote.scheme != MOONCAKE:
        return resp_variables(remote)
    extra = settings.values()["extra_config"] | {"mooncake_local_hostname": "$(POD_IP)"}
    return (
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": f"{ENV_PREFIX}EXTRA_CONFIG", "value": _text(extra)},
    )


def _disk_paths(spec: Spec, share: Share) -> tuple[str, ...]:
    """A folder for each rank of the pod, dealt out over the volumes.

    Each rank of each engine deletes what it evicts, so two that shared a folder would delete each other's.
    """
    mounts = disk_mounts(spec.tiers.disk)
    if not mounts:
        return ()
    return tuple(
        f"{mounts[rank % len(mounts)].mount_path}/lmcache/rank-{rank}" for rank in range(share.ranks)
    )


def _storing_ranks(geometry: Geometry, share: Share) -> range:
    """Ranks of the pod that store blocks: all of them, for MLA the first of each engine."""
    return range(0, share.ranks, share.ranks_per_engine if geometry.mla else 1)


def _ranks_by_volume(volumes: int, ranks: Iterable[int]) -> Counter[int]:
    return Counter(rank % volumes for rank in ranks)


def _bytes_per_volume(spec: Spec, ranks: Iterable[int], settings: LMCacheSettings) -> int:
    if spec.tiers.disk is None:
        return 0
    return max(_ranks_by_volume(len(disk_volumes(spec.tiers.disk)), ranks).values()) * settings.disk_bytes


def _notes(spec: Spec, geometry: Geometry, share: Share) -> tuple[str, ...]:
    notes = []
    disk = spec.tiers.disk
    if geometry.mla and share.ranks_per_engine > 1:
        notes.append(f"MLA: rank 0 of each engine holds the tier of all {share.ranks_per_engine} ranks")
    if disk is None:
        return tuple(notes)
    notes += shared_volume_notes(disk)
    volumes = len(disk_volumes(disk))
    empty = volumes - len(_ranks_by_volume(volumes, _storing_ranks(geometry, share)))
    if empty:
        notes.append(f"{empty} of {volumes} disk volumes stay empty: each rank that stores uses one volume")
    chunk_bytes = CHUNK_TOKENS * geometry.kv_bytes_per_token // share.ranks_per_engine
    if disk.direct_io and chunk_bytes % _DISK_BLOCK_BYTES:
        notes.append(
            f"directIO has no effect: a chunk of {chunk_bytes} bytes is not a multiple of {_DISK_BLOCK_BYTES}"
        )
    return tuple(notes)
