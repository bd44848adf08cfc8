"""What the connector takes of vLLM's engine beyond what others are meant to build on."""

from typing import Final

from vllm.config import ModelConfig
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.common import (
    OffloadingConnectorMetadata,
    OffloadingWorkerMetadata,
    TransferJob,
)
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.config import get_offloading_group_ids
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.metrics import OffloadingConnectorStats
from vllm.distributed.kv_transfer.kv_connector.v1.offloading_connector import OffloadingConnector
from vllm.distributed.parallel_state import GroupCoordinator, get_inner_dp_world_group, get_world_group
from vllm.utils.hashing import get_hash_fn_by_name
from vllm.v1.kv_cache_interface import KVCacheConfig

__all__ = [
    "GroupCoordinator",
    "OffloadingConnector",
    "OffloadingConnectorMetadata",
    "OffloadingConnectorStats",
    "OffloadingWorkerMetadata",
    "TransferJob",
    "chunk_key_bytes",
    "commit_of",
    "engine_ranks",
    "offloaded_groups",
]


_GROUP_INDEX_BYTES: Final = 4
"""That vLLM puts behind a block's hash (v1/kv_offload/base.py, make_offload_key)."""


def chunk_key_bytes(hash_algorithm: str) -> int:
    """Return the length of a chunk's key under vLLM's --prefix-caching-hash-algo."""
    return len(get_hash_fn_by_name(hash_algorithm)(None)) + _GROUP_INDEX_BYTES


def commit_of(model: ModelConfig) -> str | None:
    """Return the commit of a model that was fetched by its name; None for one in a folder."""
    commit: str | None = getattr(model.hf_config, "_commit_hash", None)
    return commit


def engine_ranks() -> GroupCoordinator:
    """Return the ranks of this engine, without those of other data-parallel replicas."""
    try:
        return get_inner_dp_world_group()
    except AssertionError:  # how vLLM says that there is no such group
        return get_world_group()


def offloaded_groups(config: KVCacheConfig) -> tuple[int, ...]:
    """Return the numbers of the KV cache groups whose blocks tiers keep."""
    return tuple(get_offloading_group_ids(config))
