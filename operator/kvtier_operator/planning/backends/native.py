"""Backend Native: vLLM's own OffloadingConnector, with vLLM's filesystem tier below it."""

from typing import Any, Final

from kvtier_operator.api.engine import Device
from kvtier_operator.api.resource import Spec
from kvtier_operator.planning.backends.disk import disk_mounts
from kvtier_operator.planning.backends.share import Share
from kvtier_operator.planning.backends.transfer import transfer_args
from kvtier_operator.planning.geometry import Geometry
from kvtier_operator.planning.plan import BackendPlan

_INDEX_BYTES_PER_ENTRY: Final = 600
"""Of vLLM's LRU index (v1/kv_offload/cpu/policies/lru.py): 515 to 593 bytes an entry measured under 0.32."""

_DISK_TOKENS_PER_FILE: Final = 256
"""llm-d, guides/tiered-prefix-cache, native/fs: `block_size` 256. Smaller files cost more lookups."""


def plan_native(spec: Spec, geometry: Geometry) -> BackendPlan:
    """`cpu_bytes_to_use` is one engine's, all its ranks together.

    Sources: vllm/v1/kv_offload/cpu/spec.py (`num_chunks = cpu_bytes_to_use // (bytes of a chunk, all
    ranks)`), cpu/shared_offload_region.py (one file of that size in /dev/shm, touched at start),
    tiering/spec.py and tiering/fs/manager.py; the same in 0.32 and 0.33.
    """
    share = Share.of(spec)
    extra: dict[str, Any] = {"cpu_bytes_to_use": share.cpu_bytes}
    mounts = disk_mounts(spec.tiers.disk)
    tokens_per_chunk = spec.engine.block_size
    if mounts:
        tokens_per_chunk = _multiple_of(spec.engine.block_size, _DISK_TOKENS_PER_FILE)
        extra |= {
            "spec_name": "TieringOffloadingSpec",
            "block_size": tokens_per_chunk,
            "secondary_tiers": [{"type": "fs", "root_dir": f"{mounts[0].mount_path}/native"}],
        }
    config = {"kv_connector": "OffloadingConnector", "kv_role": "kv_both", "kv_connector_extra_config": extra}
    entries = share.cpu_bytes // (tokens_per_chunk * geometry.kv_bytes_per_token)
    return BackendPlan(
        args=transfer_args(config),
        mounts=mounts,
        shm_bytes=share.cpu_bytes * share.engines,
        per_rank_overhead_bytes=-(-entries * _INDEX_BYTES_PER_ENTRY // share.ranks_per_engine),
        cpu_bytes_per_rank=share.cpu_bytes // share.ranks_per_engine,
        disk_bytes_per_rank=share.disk_bytes // share.ranks_per_engine,
        notes=_notes(spec),
    )


def _multiple_of(block_tokens: int, wanted_tokens: int) -> int:
    return -(-wanted_tokens // block_tokens) * block_tokens


def _notes(spec: Spec) -> tuple[str, ...]:
    notes = []
    if spec.engine.device is Device.CPU:
        notes.append(
            "backend Native refuses device cpu: vLLM's offloading needs a GPU (v1/kv_offload/cpu/spec.py)"
        )
    if spec.tiers.disk is not None:
        notes.append(
            "backend Native does not bound its disk tier: vLLM's fs tier never deletes; an emptyDir that outgrows "
            "its sizeLimit evicts the pod"
        )
    return tuple(notes)
