"""What the engine knows of a model that its file leaves out, as `make generate` wrote it down."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from kvtier_operator.planning.model_shape.config.engine_data import generated_table
from kvtier_operator.planning.model_shape.config.fields import TEXT_CONFIGS, ConfigFields

SUFFIXES: Final = (
    *("ForCausalLM", "ForConditionalGeneration", "ChatModel", "LMHeadModel", "ForTextEncoding"),
    *("EmbeddingModel", "ForSequenceClassification", "ForTokenClassification", "ForAudioClassification"),
    *("ForImageClassification", "ForVideoClassification", "ClassificationModel", "ForRewardModeling"),
    *("RewardModel", "Model"),
)
"""Ends of names that vLLM takes for one another: it converts them (config/model.py, _SUFFIX_TO_DEFAULTS)."""


def architectures_of(config: ConfigFields) -> tuple[str, ...]:
    """The names in a file; empty where it has none."""
    return config.root_strings("architectures")


def without_own_class(config: ConfigFields) -> str:
    """The first name, where vLLM has a class of its own for none; the Transformers library's may serve it.

    A file without names is of a type whose class vLLM knows.
    """
    named = architectures_of(config)
    return "" if any(_has_own_class(name) for name in named) else next(iter(named), "")


def unknown_architecture(config: ConfigFields) -> str:
    """The same, unless vLLM names it as one that the Transformers library serves."""
    name = without_own_class(config)
    return "" if name in generated_table("architectures")["library"] else name


# How vLLM names the class of a draft by what the file names, by method, and names that it leaves as they
# are (transformers_utils/configs/eagle.py).
_OF_DRAFTS: Final = {
    "eagle": re.compile(r"Eagle.*"),
    "eagle3": re.compile(r"Eagle3.*|.*Eagle3"),
    "dflash": re.compile(r"DFlash.*|.*DFlash|LiLiCorrDraftModel"),
}
_PREFIXES: Final = {"eagle": "Eagle", "eagle3": "Eagle3", "dflash": "DFlash"}
_NAMED_ALREADY: Final = "eagle"
"""Type of files that have the names as vLLM makes them."""


def unknown_draft(config: ConfigFields, method: str) -> str:
    """The name that vLLM makes of a draft's class, where it has none of that name; empty elsewhere."""
    if method not in _PREFIXES or config.root_text("model_type") == _NAMED_ALREADY:
        return unknown_architecture(config)
    names = [
        name if _OF_DRAFTS[method].fullmatch(name) else _PREFIXES[method] + name
        for name in architectures_of(config)
    ]
    return "" if any(_has_own_class(name) for name in names) else next(iter(names), "")


def refuse_removed(config: ConfigFields) -> None:
    """Nothing for a model that vLLM serves, or may serve.

    Raises:
        InvalidInputError: Neither vLLM nor the Transformers library serves it.
    """
    removed = generated_table("architectures")["removed"] if without_own_class(config) else {}
    name = next((architecture for architecture in architectures_of(config) if architecture in removed), None)
    if name is None:
        return
    raise config.error(
        "architectures",
        f"vLLM served {name} until {removed[name]} and does no more: serve another model, or set "
        "spec.model.geometry where an image of your own serves it",
    )


def refuse_states_of_the_library(config: ConfigFields) -> None:
    """For a model whose layers keep states: vLLM serves those with classes of its own alone.

    Source: models/transformers/base.py (_create_attention_instances), 0.32 and 0.33.
    """
    if name := without_own_class(config):
        raise config.error(
            "architectures",
            f"vLLM has no class of {name}, and the Transformers library's cannot serve layers that keep a "
            "state: serve another model, or set spec.model.geometry where an image of your own serves it",
        )


def gives_no_windows(model_type: str) -> bool:
    """Whether vLLM's class of this type of language model gives no layer a window of its own."""
    return model_type in generated_table("architectures")["without_windows"]


def _has_own_class(name: str) -> bool:
    own = _own_classes()
    stems = (name.removesuffix(suffix) for suffix in SUFFIXES if name.endswith(suffix))
    return name in own or any(stem + suffix in own for stem in stems for suffix in SUFFIXES)


@cache
def _own_classes() -> frozenset[str]:
    return frozenset(generated_table("architectures")["own"])


@cache
def _media() -> frozenset[str]:
    return frozenset(generated_table("architectures")["media"])


def takes_media_at_all(whole: Mapping[str, Any], config: ConfigFields) -> bool:
    """Whether vLLM's class takes images, video or sound; by the file's parts where it names no class."""
    if named := architectures_of(config):
        return not _media().isdisjoint(named)
    return any(isinstance(whole.get(part), Mapping) for part in TEXT_CONFIGS)


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
        if architecture in generated_table("encoders")["architectures"] or architecture.endswith(_MASKED):
            raise config.error(
                "architectures",
                f"{architecture} sees all tokens of a text at once, so vLLM caches no prefixes of it "
                f"and a tier has nothing to keep; {_USELESS}",
            )
    if without_own_class(config) and not _generates(architectures) and _is_encoder(config):
        raise config.error(
            "architectures",
            f"{architectures[0]} is an encoder, which sees all tokens of a text at once, so vLLM caches no "
            f"prefixes of it and a tier has nothing to keep; {_USELESS}",
        )
    if _SMALL_OR_ENCODER in architectures and _has_value(config, "is_decoder", value=False):
        raise config.error(
            "is_decoder",
            f"false makes {_SMALL_OR_ENCODER} an encoder, so vLLM caches no prefixes of it and a tier has "
            f"nothing to keep; {_USELESS}",
        )
    for field, bidirectional in (("is_causal", False), ("use_bidirectional_attention", True)):
        # Of a language model that generates, Gemma's second one is about images alone ("vision").
        if _has_value(config, field, value=bidirectional) and not _generates(architectures):
            raise config.error(
                field,
                f"{str(bidirectional).lower()} lets a token see those after it, so vLLM caches no prefixes "
                f"of this model and a tier has nothing to keep; {_USELESS}",
            )
    if _has_value(config, "is_encoder_decoder", value=True):
        raise config.error(
            "is_encoder_decoder",
            "vLLM caches no prefixes of an encoder-decoder model, so a tier has nothing to keep; " + _USELESS,
        )


def _has_value(config: ConfigFields, field: str, *, value: object) -> bool:
    """Whether the language model's part says it, or the root."""
    return config.get(field) is value or config.root(field) is value


def _generates(architectures: Sequence[str]) -> bool:
    return any(
        architecture.endswith(("ForCausalLM", "ForConditionalGeneration")) for architecture in architectures
    )


def _is_encoder(config: ConfigFields) -> bool:
    """Whether the Transformers library fills masks with this type, and the file makes no decoder of it."""
    named = config.text("model_type") in generated_table("encoders")["model_types"]
    return named and not _has_value(config, "is_decoder", value=True)
