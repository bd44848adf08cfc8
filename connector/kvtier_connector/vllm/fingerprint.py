"""What decides the meaning of KV bytes: only an engine that is equal in it may load them."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import vllm
from vllm import envs
from vllm.config import ModelConfig, VllmConfig
from vllm.platforms import current_platform
from vllm.v1.kv_cache_interface import KVCacheConfig
from vllm.v1.kv_offload.base import OffloadingSpec

from kvtier_connector.core.disk.files.fingerprint import Fingerprint, fingerprint
from kvtier_connector.core.index.slots import TierGeometry
from kvtier_connector.errors import SettingError
from kvtier_connector.vllm.upstream.engine import commit_of

_PATTERNS: Final = (
    "*.safetensors",
    "*.bin",
    "*.pt",
    "*.pth",
    "*.gguf",
    "*.index.json",
    "adapter_config.json",
    "*processor_config.json",  # what becomes of an image: vLLM's hash of that is of the image as it came
)
_BLOBS: Final = "blobs"  # folder of Hugging Face's cache in which a file's name is the hash of its content
_SHA256_DIGITS: Final = 64
"""Of the name of a large file there; a small one's is Git's own hash."""
_READ_BYTES: Final = 256 << 10
WeightFacts = dict[str, list[str | int]]
_CONFIGURATIONS: Final = ("config.json", "*quant*.json", "params.json")
"""Files beside the weights that say how to compute with them."""


def engine_facts(config: VllmConfig, kv_cache: KVCacheConfig, geometry: TierGeometry) -> dict[str, object]:
    """Return all that decides what is in a chunk, and which chunk has which key, for a fingerprint.

    vLLM's minor stands for what vLLM has no other name for: the kernels that write KV bytes, and what its
    models compute (docs/development/adr/0035-a-minor-starts-cold.md).
    """
    model, cache, parallel = config.model_config, config.cache_config, config.parallel_config
    speculative = config.speculative_config
    hf_config = json.loads(model.hf_config.to_json_string(use_diff=False))
    transformers_version = hf_config.pop("transformers_version", None)
    hf_config.pop("_name_or_path", None)  # a copy elsewhere computes the same
    return {
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


def _fused_cache_writes(config: VllmConfig) -> dict[str, str]:
    """Return vLLM's passes that fuse what writes KV bytes: one has V lie in another order on ROCm.

    Source: vllm/config/compilation.py (PassConfig), vllm/v1/attention/backends/rocm_attn.py
    (set_interleaved_v_cache).
    """
    passes = vars(config.compilation_config.pass_config)
    return {name: str(value) for name, value in passes.items() if "kvcache" in name}


def weights_identity(model: ModelConfig) -> object:
    """Return what tells a model's weights from others, of JSON's types.

    Files of Hugging Face's cache are known by their content's hash, others by size and time of change; a
    model that vLLM fetches itself by its commit. Where only a name is known, the revision asked for has to
    do.
    """
    return _identity(model, _by_name_or_time)


def weights_contents(model: ModelConfig) -> object:
    """Return what is the same for every copy of a model's weights, of JSON's types.

    Reads the files, at 1 to 2 GB/s; those of Hugging Face's cache have their SHA-256 for a name already.
    Raises OSError: one cannot be read.
    """
    return _identity(model, _by_content)


def _identity(model: ModelConfig, facts_of: Callable[[Path], list[str | int]]) -> object:
    files = _weights_files(Path(model.model_weights or model.model))
    if files is not None:
        return {file.name: facts_of(file) for file in files}
    return {"name": model.model, "commit": commit_of(model), "revision": model.revision}


def files_identity(path: Path) -> WeightFacts | None:
    """Return what tells the weights in a file or a folder from others, or None if neither is there."""
    files = _weights_files(path)
    return None if files is None else {file.name: _by_name_or_time(file) for file in files}


def _weights_files(path: Path) -> list[Path] | None:
    if path.is_file():
        return [path]
    if not path.is_dir():
        return None
    return sorted(file for pattern in _PATTERNS for file in path.glob(pattern))


def _by_name_or_time(file: Path) -> list[str | int]:
    real = file.resolve()
    about = real.stat()
    if real.parent.name == _BLOBS:
        return [real.name, about.st_size]
    return [about.st_size, about.st_mtime_ns]


def _by_content(file: Path) -> list[str | int]:
    real = file.resolve()
    size_bytes = real.stat().st_size
    if real.parent.name == _BLOBS and len(real.name) == _SHA256_DIGITS:
        return [real.name, size_bytes]
    with real.open("rb", buffering=0) as content:
        digest, piece = hashlib.sha256(), memoryview(bytearray(_READ_BYTES))
        while length := content.readinto(piece):
            digest.update(piece[:length])
    return [digest.hexdigest(), size_bytes]


def tier_fingerprint(spec: OffloadingSpec, row_bytes: int, namespace: str, entry: str) -> Fingerprint:
    """Return the fingerprint of all that is known to decide what is in a chunk.

    In it: vLLM's minor, model runner and platform; the model's name, and of a model in a folder its weights'
    files and configuration; dtype of the KV cache, its layout, groups, layers and block and chunk sizes; all
    parallel sizes; whether ranks share one copy or a canonical layout; `namespace`.

    Not in it, because a secondary tier is not told, in the scheduler's process, of vLLM's configuration:
    what changes the computation from the command line (--hf-overrides, --quantization, --dtype beside a KV
    cache dtype, --load-format dummy, --mm-processor-kwargs, --revision of a model that is known by its name
    only, on ROCm passes of --compilation-config that write KV), and the weights of LoRA adapters, which are
    told apart by their names. Whoever changes one of these changes `namespace`. Raises SettingError: nothing
    says which weights the model has.
    """
    config = spec.config
    model, parallel, cache = config.model, config.parallel, config.cache
    weights = files_identity(Path(model.name))
    if not weights and not namespace:
        raise SettingError(
            f"{entry}.namespace: missing; the weights of {model.name} cannot be told from others that have "
            "its name: give a text that changes with them, such as their revision"
        )
    return fingerprint(
        {
            "tier": "secondary",
            "vllm": ".".join(vllm.__version__.split(".")[:2]),
            "runner": envs.VLLM_USE_V2_MODEL_RUNNER,
            "platform": [current_platform.device_type, current_platform.get_device_name()],
            "namespace": namespace,
            "model": model.name,
            "weights": weights,
            "configuration": _configuration(Path(model.name)),
            "KV cache": [model.dtype, config.kv_cache_layout, config.worker_kv_bytes_per_block],
            "KV cache groups": [
                [group.group_id, group.tokens_per_block, list(group.layer_names)] for group in config.groups
            ],
            "chunk": [cache.tokens_per_hash, cache.blocks_per_chunk, row_bytes],
            "layout": [config.canonical_layout, spec.replicated_layout, parallel.is_parallelism_agnostic],
            "parallel": [
                parallel.world_size,
                parallel.tp_size,
                parallel.pp_size,
                parallel.pcp_size,
                parallel.dcp_size,
            ],
        }
    )


def _configuration(folder: Path) -> dict[str, str]:
    files = {file for pattern in _CONFIGURATIONS for file in folder.glob(pattern)} if folder.is_dir() else ()
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(files)}
