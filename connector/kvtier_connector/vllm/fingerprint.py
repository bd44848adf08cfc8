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

    Args:
        config: vLLM's.
        kv_cache: Its KV caches.
        geometry: How a chunk lies in memory, and so on disk.
    """
    model, cache, parallel = config.model_config, config.cache_config, config.parallel_config
    speculative = config.speculative_config
    facts = {
        "vllm": ".".join(vllm.__version__.split(".")[:2]),
        "runner": "v2" if config.use_v2_model_runner else "v1",
        "platform": [current_platform.device_type, current_platform.get_device_name()],
        "weights": weights_identity(model),
        "images": repr(model.multimodal_config and model.multimodal_config.mm_processor_kwargs),
        "load": [str(config.load_config.load_format), model.seed],
        "config": json.loads(model.hf_config.to_json_string(use_diff=False)),
        "max model length": model.max_model_len,  # some RoPE scalings go by it
        "dtype": str(model.dtype),
        "quantization": [str(model.quantization), repr(model.quantization_config)],
        "KV cache": [str(cache.cache_dtype), cache.block_size, str(cache.kv_cache_layout)],
        "KV cache groups": [
            [sorted(group.layer_names), repr(group.kv_cache_spec)] for group in kv_cache.kv_cache_groups
        ],
        "attention": repr(config.attention_config),
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
