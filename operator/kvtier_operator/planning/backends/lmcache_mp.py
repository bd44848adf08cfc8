"""Backend LMCacheMP: LMCache as a server beside the engine."""

import json
from collections.abc import Mapping
from math import lcm
from typing import Any, Final

from kvtier_common.tier import Tier
from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.engine import Device
from kvtier_operator.api.spec.tiers.cpu import HugepageSize, Policy
from kvtier_operator.api.spec.tiers.disk import DiskTierSpec
from kvtier_operator.api.spec.tiers.remote import RemoteTierSpec
from kvtier_operator.planning.arguments.batches import STEP, step_tokens
from kvtier_operator.planning.backends.parts import (
    Share,
    disk_mounts,
    gib,
    gib_text,
    required_pages,
    round_down,
    shared_volume_notes,
    transfer_args,
)
from kvtier_operator.planning.backends.store_access import (
    LMCACHE_CANNOT,
    LMCACHE_CAVEAT,
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
    RemoteTraits,
    TierPlace,
)
from kvtier_operator.planning.base.container_parts import Mount, Sidecar
from kvtier_operator.planning.base.tier_plan import BackendPlan, TierChunks
from kvtier_operator.planning.images import ImageName
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.units import GIB, MIB, count, round_up, size

# Sources, lmcache 0.5.6: integration/vllm/lmcache_mp_connector.py (a chunk is a multiple of every group's
# block), v1/kv_layer_groups.py (`--separate-object-groups`; get_subchunk_sw_size_tokens: of a window, a chunk
# keeps its last tokens), v1/multiprocess/modules/lmcache_driven_transfer.py (all_null_chunk_masks: of states,
# what a step has left).
_DEFAULT_CHUNK_TOKENS: Final = 256
"""LMCache's default `--chunk-size`; the smallest that is taken here."""


def chunk_tokens(geometry: Geometry) -> int:
    """Tokens of a chunk, whole blocks of every group of layers."""
    return round_up(_DEFAULT_CHUNK_TOKENS, lcm(*geometry.group_block_tokens))


def bytes_per_chunk(geometry: Geometry) -> int | None:
    """Bytes of a chunk with what it keeps of windows; None for its tokens' bytes.

    Every chunk has its part of each window, while vLLM's own tiers keep a window once a prefix.
    """
    window = _window_tokens(geometry)
    if not window or geometry.keeps_states:
        return None
    tokens = chunk_tokens(geometry)
    windows = geometry.bytes_per_prefix * min(tokens, window) // window
    return geometry.kv_bytes_per_token * tokens + windows


def states_every_tokens(spec: Spec, geometry: Geometry) -> int | None:
    """Tokens of a prefix after which the states are kept again: at the end of each step of its prefill."""
    if not geometry.bytes_per_prefix or not geometry.keeps_states:
        return None
    return max(step_tokens(spec.engine), chunk_tokens(geometry))


def chunk_notes(spec: Spec, geometry: Geometry) -> tuple[str, ...]:
    """What a reader of the report should know of it."""
    notes = []
    tokens = chunk_tokens(geometry)
    if tokens != _DEFAULT_CHUNK_TOKENS:
        notes.append(f"backend LMCacheMP keeps chunks of {count(tokens)} tokens, whole blocks of the engine")
    if (every := states_every_tokens(spec, geometry)) is not None:
        has_step = spec.engine.extra_args.value(STEP) is not None
        notes.append(
            "backend LMCacheMP keeps the states at the end of each step of a prefill, not of a prompt alone: "
            f"{size(geometry.bytes_per_prefix)} for every {count(every)} tokens of it, "
            + (STEP if has_step else f"vLLM's default of {STEP} by the GPU")
        )
    elif _window_tokens(geometry) and geometry.bytes_per_prefix:
        notes.append("backend LMCacheMP keeps a part of every window with each chunk, not once a prefix")
    return tuple(notes)


def _window_tokens(geometry: Geometry) -> int:
    """Of the windows that are kept as such; 0 where none are."""
    if not geometry.bytes_per_prefix:
        return 0
    return max((group.window_tokens for group in geometry.groups), default=0)


SIDECAR_NAME: Final = "lmcache"
_PORTS_FROM: Final = 5555
"""LMCache's default request port; the HTTP port and the metrics port follow it."""
_OVERHEAD_BYTES: Final = 5 * GIB
"""LMCache's own operator requests the cache's size and 5 Gi for its server."""
_SCRATCH_SCRIPT: Final = 'rm -rf -- "$0" && mkdir -p -- "$0" && exec "$@"'


TRAITS: Final = BackendTraits(
    title="LMCache's server",
    project="LMCache",
    images=dict.fromkeys(Device, ImageName.LMCACHE),
    # lmcache 0.5.6: --l1-use-hugepages, 2 MiB only (#2643)
    cpu=CpuTraits(
        place=TierPlace.SERVER, page_sizes=frozenset({HugepageSize.TWO_MIB}), pins_in_one_call=True
    ),
    disk=DiskTraits(
        folder=Folder.EMPTIED,
        caveat=Caveat(
            "DiskColdAfterRestart",
            "the server's disk tier starts empty after every restart; spec.backend KVTier's is warm then",
            "empties the folder before each start",
        ),
    ),
    # the package has no extension for Mooncake (lmcache_mooncake), and its clients of clusters and TLS take a
    # password as an argument alone (v1/distributed/l2_adapters/valkey_l2_adapter.py)
    remote=RemoteTraits(schemes=frozenset((*RESP_SCHEMES, S3)), cannot=LMCACHE_CANNOT, caveat=LMCACHE_CAVEAT),
    # lmcache 0.5.6: lmcache_mp_connector.py, validate_mamba_step_alignment
    whole_blocks=True,
    needs_gpu=NeedsGPU("LMCache copies from GPUs only", starts=True),
    # lmcache 0.5.6: integration/vllm/vllm_multi_process_adapter.py, _create_key
    tells_adapters_apart=False,
    adapters_otherwise=", or give the requests of each adapter a cache_salt of their own",
    package="lmcache",
    fixed_port=True,
)


def plan(spec: Spec, geometry: Geometry) -> BackendPlan:
    """One server for all engines of the pod; the tier is its memory, the engines hold handles to it.

    Sources, lmcache 0.5.6: lmcache/v1/multiprocess/config.py and v1/distributed/config.py (flags),
    v1/distributed/l2_adapters/fs_native_l2_adapter.py (disk), integration/vllm/lmcache_mp_connector.py and
    vllm_multi_process_adapter.py (the `lmcache.mp.` settings).
    """
    cpu, disk = spec.tiers.cpu, spec.tiers.disk
    share = Share.of(spec)
    capacity, required = cpu.capacity.bytes, cpu.hugepages.policy is Policy.REQUIRE
    cpu_bytes = round_up(capacity, 2 * MIB) if required else round_down(capacity, MIB)
    hugepages = required_pages(cpu, [cpu_bytes])
    disk_bytes = round_down(disk.capacity.bytes, MIB) if disk else 0
    mounts = disk_mounts(disk)
    request_port = _request_port(spec.engine.port)
    server = Sidecar(
        name=SIDECAR_NAME,
        image=None,
        command=_command(spec, _server(spec, geometry, cpu_bytes, request_port), disk_bytes, mounts),
        env=_env(spec),
        env_from=_secrets(spec.tiers.remote),
        ports={
            "lmcache": request_port,
            "lmcache-http": request_port + 1,
            "lmcache-metrics": request_port + 2,
        },
        health=f"http://127.0.0.1:{request_port + 1}/healthcheck",
        memory_bytes=_OVERHEAD_BYTES + (0 if hugepages else cpu_bytes),
    )
    config = {
        "kv_connector": "LMCacheMPConnector",
        "kv_connector_module_path": "lmcache.integration.vllm.lmcache_mp_connector",
        "kv_role": "kv_both",
        "kv_load_failure_policy": "recompute",
        "kv_connector_extra_config": {
            "lmcache.mp.host": "tcp://127.0.0.1",
            "lmcache.mp.port": request_port,
            "lmcache.mp.isolated_ipc": True,
        },
    }
    return BackendPlan(
        args=transfer_args(config),
        env={"LMCACHE_TRACK_USAGE": "false"},
        mounts=mounts,
        sidecars=(server,),
        bytes_per_rank={
            Tier.CPU: cpu_bytes // share.ranks,
            Tier.DISK: disk_bytes // share.ranks,
        },
        chunks=_remote_chunks(spec, geometry),
        hugepages=hugepages,
        tokens_per_chunk=chunk_tokens(geometry),
        bytes_per_chunk=bytes_per_chunk(geometry),
        states_every_tokens=states_every_tokens(spec, geometry),
        notes=(*_notes(spec), *chunk_notes(spec, geometry)),
    )


def _remote_chunks(spec: Spec, geometry: Geometry) -> Mapping[Tier, TierChunks]:
    if (remote := spec.tiers.remote) is None:
        return {}
    kept_bytes = bytes_per_chunk(geometry) or geometry.kv_bytes_per_token * chunk_tokens(geometry)
    values = 1 if geometry.mla else Share.of(spec).ranks_per_engine
    return {Tier.REMOTE: held_chunks(remote, kept_bytes, values)}


def _request_port(engine_port: int) -> int:
    taken = range(_PORTS_FROM, _PORTS_FROM + 3)
    return _PORTS_FROM + 10 if engine_port in taken else _PORTS_FROM


def _env(spec: Spec) -> dict[str, str]:
    env = {"PYTHONHASHSEED": "0", "LMCACHE_TRACK_USAGE": "false"}
    if spec.engine.device is Device.GPU:
        # the device plugin gives GPUs to one container; the server opens the engine's memory on them
        env |= {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
    return env


def _server(spec: Spec, geometry: Geometry, cpu_bytes: int, request_port: int) -> tuple[str, ...]:
    required = spec.tiers.cpu.hugepages.policy is Policy.REQUIRE
    return (
        *("lmcache", "server"),
        *("--host", "127.0.0.1"),
        *("--port", str(request_port)),
        *("--http-host", "127.0.0.1"),
        *("--http-port", str(request_port + 1)),
        *("--prometheus-port", str(request_port + 2)),
        *("--chunk-size", str(chunk_tokens(geometry))),
        # one object for all layers would hold every token of windows, and a state for every chunk
        *(("--separate-object-groups",) if geometry.hybrid else ()),
        *("--max-workers", str(Share.of(spec).ranks)),
        *("--l1-size-gb", gib_text(cpu_bytes)),
        # all of it at start: an allocation that cannot be had fails then, not under load
        "--no-l1-use-lazy",
        *(("--l1-use-hugepages",) if required else ()),
        *("--eviction-policy", "LRU"),
        # the engine's /dev/shm is a volume of its own, so CUDA handles cannot be passed through it
        "--isolated-ipc",
    )


def _command(
    spec: Spec, server: tuple[str, ...], disk_bytes: int, mounts: tuple[Mount, ...]
) -> tuple[str, ...]:
    disk, remote = spec.tiers.disk, spec.tiers.remote
    over_network = () if remote is None else _second_level(_remote_adapter(remote))
    if disk is None:
        return (*server, *over_network)
    folder = f"{mounts[0].mount_path}/lmcache"
    # of two that have a chunk the first is read (v1/distributed/storage_controllers/prefetch_policy.py)
    command = (*server, *_second_level(_disk_adapter(disk, disk_bytes, folder)), *over_network)
    # the adapter does not count files of an earlier start, so they would add up beyond the capacity
    return ("/bin/sh", "-c", _SCRATCH_SCRIPT, folder, *command)


def _second_level(adapter: Mapping[str, Any]) -> tuple[str, str]:
    return "--l2-adapter", json.dumps(adapter, separators=(",", ":"))


def _disk_adapter(disk: DiskTierSpec, disk_bytes: int, folder: str) -> Mapping[str, Any]:
    return {
        "type": "fs_native",
        "base_path": folder,
        "use_odirect": disk.direct_io,
        "max_capacity_gb": gib(disk_bytes),
        # the capacity alone only counts; nothing is deleted without this (LMCache #4564)
        "eviction": {"eviction_policy": "LRU", "trigger_watermark": 0.9, "eviction_ratio": 0.1},
    }


def _remote_adapter(remote: RemoteTierSpec) -> Mapping[str, Any]:
    """Without a capacity: what one server counts of a store that others fill, too, would be wrong.

    Source: v1/distributed/l2_adapters/resp_l2_adapter.py and s3_l2_adapter.py, `from_dict`.
    """
    if remote.scheme == S3:
        bucket = Bucket.of(remote)
        s3 = {"type": "s3", "s3_endpoint": f"s3://{bucket.host}", "s3_region": bucket.region}
        threads = {"s3_num_io_threads": remote.connections} if remote.connections else {}
        return s3 | {"disable_tls": bucket.scheme == "http"} | threads
    host, port = host_and_port(remote)
    workers = {"num_workers": remote.connections} if remote.connections else {}
    return {"type": "resp", "host": host, "port": port} | workers


def _secrets(remote: RemoteTierSpec | None) -> tuple[Mapping[str, Any], ...]:
    if remote is None:
        return ()
    return s3_variables(remote) if remote.scheme == S3 else resp_variables(remote)


def _notes(spec: Spec) -> tuple[str, ...]:
    notes = [
        "backend LMCacheMP evicts a fifth of the CPU tier at four fifths full: it holds 64 to 80 percent"
    ]
    if spec.engine.device is Device.GPU:
        notes.append(
            "backend LMCacheMP: the server sees the GPUs through NVIDIA_VISIBLE_DEVICES=all, which the "
            "node's NVIDIA runtime must accept from containers without privileges"
        )
    if spec.tiers.disk is not None:
        notes += shared_volume_notes(spec.tiers.disk)
    return tuple(notes)
