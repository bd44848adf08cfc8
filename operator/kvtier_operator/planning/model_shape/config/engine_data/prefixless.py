"""Models of which vLLM caches no prefixes, so that no tier can keep one: encoders and encoder-decoders."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

from kvtier_operator.planning.model_shape.config.engine_data.architectures import (
    architectures_of,
    without_own_class,
)
from kvtier_operator.planning.model_shape.config.fields import ConfigFields

_MASKED: Final = "ForMaskedLM"
_SMALL_OR_ENCODER: Final = "JinaEmbeddingsV5Model"
"""Its small sizes are decoders, the smallest one is an encoder (vLLM, models/config.py)."""
_USELESS: Final = "serve it without a KVCacheTier"


def refuse_prefixless(config: ConfigFields) -> None:
    """Nothing for a model that keeps prefixes.

    Raises:
        InvalidInputError: It keeps none; what it is, and that a tier does nothing for it.
    """
    architectures = architectures_of(config)
    for architecture in architectures:
        if architecture in _encoders()["architectures"] or architecture.endswith(_MASKED):
            raise config.wrong(
                "architectures",
                f"{architecture} sees all tokens of a text at once, so vLLM caches no prefixes of it "
                f"and a tier has nothing to keep; {_USELESS}",
            )
    if without_own_class(config) and not _generates(architectures) and _is_encoder(config):
        raise config.wrong(
            "architectures",
            f"{architectures[0]} is an encoder, which sees all tokens of a text at once, so vLLM caches no "
            f"prefixes of it and a tier has nothing to keep; {_USELESS}",
        )
    if _SMALL_OR_ENCODER in architectures and _has_value(config, "is_decoder", value=False):
        raise config.wrong(
            "is_decoder",
            f"false makes {_SMALL_OR_ENCODER} an encoder, so vLLM caches no prefixes of it and a tier has "
            f"nothing to keep; {_USELESS}",
        )
    for field, bidirectional in (("is_causal", False), ("use_bidirectional_attention", True)):
        # Of a language model that generates, Gemma's second one is about images alone ("vision").
        if _has_value(config, field, value=bidirectional) and not _generates(architectures):
            raise config.wrong(
                field,
                f"{str(bidirectional).lower()} lets a token see those after it, so vLLM caches no prefixes "
                f"of this model and a tier has nothing to keep; {_USELESS}",
            )
    if _has_value(config, "is_encoder_decoder", value=True):
        raise config.wrong(
            "is_encoder_decoder",
            "vLLM caches no prefixes of an encoder-decoder model, so a tier has nothing to keep; " + _USELESS,
        )


def _has_value(config: ConfigFields, field: str, *, value: object) -> bool:
    """Whether the language model's part says it, or the root."""
    return config.get(field) is value or config.root(field) is value


def _generates(architectures: Sequence[str]) -> bool:
    return any(each.endswith(("ForCausalLM", "ForConditionalGeneration")) for each in architectures)


def _is_encoder(config: ConfigFields) -> bool:
    """Whether the Transformers library fills masks with this type, and the file makes no decoder of it."""
    named = config.text("model_type") in _encoders()["model_types"]
    return named and not _has_value(config, "is_decoder", value=True)


@cache
def _encoders() -> Mapping[str, Any]:
    text = files(__package__).joinpath("encoders.json").read_text(encoding="utf-8")
    table: Mapping[str, Any] = json.loads(text)
    return table
