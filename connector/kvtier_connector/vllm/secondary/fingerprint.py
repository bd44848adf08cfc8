"""What decides the meaning of KV bytes, as far as vLLM tells its secondary tiers."""

import hashlib
from pathlib import Path
from typing import Final

import vllm
from vllm import envs
from vllm.platforms import current_platform
from vllm.v1.kv_offload.base import OffloadingSpec

from kvtier_connector.core.disk.files.fingerprint import Fingerprint, fingerprint
from kvtier_connector.errors import SettingError
from kvtier_connector.vllm.weights import files_identity

_CONFIGURATIONS: Final = ("config.json", "*quant*.json", "params.json")
"""Files beside the weights that say how to compute with them."""


def tier_fingerprint(spec: OffloadingSpec, row_bytes: int, namespace: str, entry: str) -> Fingerprint:
    """Return the fingerprint of all that is known to decide what is in a chunk.

    In it: vLLM's minor, model runner and platform; the model's name, and of a model in a folder its weights'
    files and configuration; dtype of the KV cache, its layout, groups, layers and block and chunk sizes; all
    parallel sizes; whether ranks share one copy or a canonical layout; `namespace`.

    Not in it, because a secondary tier is not told, in the scheduler's process, of vLLM's configuration:
    what changes the computation from the command line (--hf-overrides, --quantization, --dtype beside a KV
    cache dtype, --load-format dummy, --mm-processor-kwargs, --revision of a model that is known by its name
    only, on ROCm passes of --compilation-config that write KV), and the weights of LoRA adapters, which are
    told apart by their names. Whoever changes one of these changes `namespace`.

    Args:
        spec: What vLLM tells.
        row_bytes: Bytes of a chunk in memory.
        namespace: The setting.
        entry: Field path of the settings.

    Raises:
        SettingError: Nothing says which weights the model has.
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
    found = {file for pattern in _CONFIGURATIONS for file in folder.glob(pattern)} if folder.is_dir() else ()
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(found)}
