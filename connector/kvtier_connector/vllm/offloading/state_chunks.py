"""Warns at start if chunks do not suit a model whose layers keep a state of the whole prefix."""

from vllm.v1.kv_cache_interface import KVCacheConfig, MambaSpec

from kvtier_connector.vllm.logger import log


def warn_of_states(kv_cache_config: KVCacheConfig, blocks_per_chunk: int) -> None:
    """Say once, at start, that chunks of several blocks leave most prompts of such a model without a hit.

    vLLM keeps a state where a prompt's last block ends, and stores it only if a chunk ends there too
    (offloading/scheduler.py, _build_aligned_boundary_store_jobs).
    """
    keep_states = any(
        isinstance(group.kv_cache_spec, MambaSpec) and group.kv_cache_spec.mamba_cache_mode == "align"
        for group in kv_cache_config.kv_cache_groups
    )
    if keep_states and blocks_per_chunk > 1:
        log.warning(
            "kvtier: blocks_per_chunk %d: this model keeps states, which are stored only where a prompt ends "
            "at a chunk's end, about one of %d; set blocks_per_chunk to 1",
            blocks_per_chunk,
            blocks_per_chunk,
        )
