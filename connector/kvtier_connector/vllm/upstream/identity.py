"""What vLLM and Transformers know of a chunk's key and of a model's weights, and do not offer."""

from typing import Final

from vllm.config import ModelConfig
from vllm.utils.hashing import get_hash_fn_by_name

_GROUP_INDEX_BYTES: Final = 4
"""That vLLM puts behind a block's hash (v1/kv_offload/base.py, make_offload_key)."""


def chunk_key_bytes(hash_algorithm: str) -> int:
    """Return the length of a chunk's key.

    Args:
        hash_algorithm: vLLM's --prefix-caching-hash-algo.
    """
    return len(get_hash_fn_by_name(hash_algorithm)(None)) + _GROUP_INDEX_BYTES


def commit_of(model: ModelConfig) -> str | None:
    """Return the commit of a model that was fetched by its name; None for one in a folder."""
    commit: str | None = getattr(model.hf_config, "_commit_hash", None)
    return commit
