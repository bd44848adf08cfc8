"""What decides the meaning of this engine's KV bytes: only an engine that is equal in it may load them."""

import json
import os

import vllm
from vllm.config import VllmConfig
from vllm.platforms import current_platform
from vllm.v1.kv_cache_interface import KVCacheConfig

from kvtier_connector.core.disk.files.fingerprint import Fingerprint, fingerprint
from kvtier_connector.core.index.slots import TierGeometry
from kvtier_connector.vllm.weights import weights_identity


def engine_fingerprint(config: VllmConfig, kv_cache: KVCacheConfig, geometry: TierGeometry) -> Fingerprint:
    """Return the fingerprint of all that decides what is in a chunk, and which chunk has which key.

    vLLM's minor stands for what vLLM has no other name for: the kernels that write KV bytes, and what its
    models compute (docs/development/adr/0035-a-minor-starts-cold.md).

    Args:
        config: vLLM's.
        kv_cache: Its KV caches.
        geometry: How a chunk lies in memory, and so on disk.
    """
    model, cache, parallel = config.model_config, config.cache_config, config.parallel_config
    speculative = config.speculative_config
    hf_config = json.loads(model.hf_config.to_json_string(use_diff=False))
    transformers_version = hf_config.pop("transformers_version", None)
    facts = {
        "vllm": ".".join(vllm.__version__.split(".")[:2]),
        "runner": "v2" if config.use_v2_model_runner else "v1",
        "platform": [current_platform.device_type, current_platform.get_device_name()],
        "weights": weights_identity(model),
        "images": repr(model.multimodal_config and model.multimodal_config.mm_processor_kwargs),
        "load": [str(config.load_config.load_format), model.seed],
        "transformers": transformers_version,  # it prepares images
        "config": hf_config,
        "max model length": model.max_model_len,  # some RoPE scalings go by it
        "dtype": str(model.dtype),
        "quantization": [str(model.quantization), repr(model.quantization_config)],
        "KV cache": [str(cache.cache_dtype), cache.block_size, str(cache.kv_cache_layout)],
        "KV cache groups": [
            [sorted(group.layer_names), repr(group.kv_cache_spec)] for group in kv_cache.kv_cache_groups
        ],
        "attention": repr(config.attention_config),
        "fused cache writes": _fused_cache_writes(config),
        "speculative": [speculative.method, speculative.model] if speculative else None,
        "parallel": [
            parallel.tensor_parallel_size,
            parallel.pipeline_parallel_size,
            parallel.prefill_context_parallel_size,
            parallel.decode_context_parallel_size,
            parallel.world_size,
        ],
        "chunk": [geometry.slices, geometry.slot_bytes],
        "hash": [cache.prefix_caching_hash_algo, os.environ.get("PYTHONHASHSEED")],
    }
    return fingerprint(facts)


def _fused_cache_writes(config: VllmConfig) -> dict[str, str]:
    """Return vLLM's passes that fuse what writes KV bytes: one has V lie in another order on ROCm.

    Source: vllm/config/compilation.py (PassConfig), vllm/v1/attention/backends/rocm_attn.py
    (set_interleaved_v_cache).
    """
    passes = vars(config.compilation_config.pass_config)
    return {name: str(value) for name, value in passes.items() if "kvcache" in name}
