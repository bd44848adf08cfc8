"""The shape that a Hugging Face config.json describes."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kvtier_operator.api.schema.complaints import show_value
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.model_shape.config.checkpoint import (
    checkpoint_cache,
    is_mixed_by_modelopt,
    quantization_method,
    quantization_of,
)
from kvtier_operator.planning.model_shape.config.engine_data.architectures import (
    refuse_prefixless,
    refuse_removed,
    refuse_states_of_the_library,
    takes_media_at_all,
    unknown_architecture,
)
from kvtier_operator.planning.model_shape.config.engine_data.defaults import is_known_type
from kvtier_operator.planning.model_shape.config.fields import TEXT_CONFIGS, ConfigFields
from kvtier_operator.planning.model_shape.layers.layer_groups import layer_groups
from kvtier_operator.planning.model_shape.layers.layer_kinds import is_chunked
from kvtier_operator.planning.model_shape.layers.layer_parts import has_sinks, images_both_ways
from kvtier_operator.planning.model_shape.layers.recurrent_state import recurrent_state
from kvtier_operator.planning.model_shape.parameters import (
    expert_count,
    experts_of,
    parameter_bits,
    sizes_of,
)
from kvtier_operator.planning.model_shape.shape import LayerKind, ModelShape, State
from kvtier_operator.planning.model_shape.widths import shared_widths

# vLLM reads that repository's config.json (transformers_utils/configs/ultravox.py, text_model_id).
_TYPE: Final = "ultravox"
_FIELD: Final = "text_model_id"
_PART: Final = "text_config"


def with_text_model(config: Mapping[str, Any], source: str) -> Mapping[str, Any]:
    """The configuration with its language model's in it.

    Raises:
        InvalidInputError: It names one that the catalogue lacks, and does not describe it either.
    """
    name = config.get(_FIELD)
    if config.get("model_type") != _TYPE or name is None:
        return config
    from kvtier_operator.planning.model_shape.catalogue import config_in_catalogue  # noqa: PLC0415 - slow to import

    part = config_in_catalogue(name) if isinstance(name, str) else None
    if part is not None:
        return {**config, _PART: part}
    if config.get(_PART):
        return config
    message = (
        f"{show_value(name)} is not in the catalogue: write its config.json's fields as {_PART} beside it"
    )
    raise InvalidInputError(source, Problem(_FIELD, f"{message}, or set spec.model.geometry"))


# The rules are those of vLLM 0.32 (transformers_utils/model_arch_config_convertor.py), so that a plan and
# the engine read the same file the same way.
# Models whose cache is not plain keys, values, latents and states of each layer, by what tells them:
# DeepSeek V4 compresses tokens; GLM-5 next pools its indexer's keys; Qwen4 keeps n-gram states and rings;
# Inkling keeps convolutions as windows; dots3's windows keep latents; HRM's layers run in cycles.
_OTHER_CACHES: Final = ("compress_ratios", "per_layer_config", "index_kpool", "H_cycles")
_OTHER_TYPES: Final = ("deepseek_v4", "glm5_next", "qwen4_exp", "inkling", "dots3_note", "hrm_text")
_OTHER_NAMES: Final = re.compile(
    r"deepseek-?v4|glm-?5-?next|qwen-?4|inkling|dots[.-]?3|(^|/)hrm\b", re.IGNORECASE
)
# vLLM takes fp8 for `auto` on Blackwell's data-centre GPUs (models/config.py: GlmMoeDsaForCausalLM in 0.32,
# Glm5NextModelConfig in 0.33).
_FP8_BY_GPU: Final = {"glm_moe_dsa", "glm5_next", "glm5_next_text"}
# What blocks are a multiple of where FlashInfer computes Gated DeltaNet's prefill (vLLM 0.33,
# v1/attention/backends/gdn_attn.py, FLASHINFER_GDN_CHECKPOINT_ALIGNMENT).
_GATED_DELTA_NET: Final = ("qwen3_next", "qwen3_5", "qwen4_exp")
_GATED_DELTA_NET_TOKENS: Final = 64
# Their classes have layers with states, whatever a file says of its layers.
_HYBRIDS: Final = ("nemotron_h", "qwen3_next", "qwen3_5")
# vLLM, layers/quantization/turboquant/config.py, _get_full_attention_layer_indices.
_BESIDE_STATES: Final = {"falcon_h1", "zamba2"}
# Its class divides the KV heads and copies none (vLLM, models/gpt_oss.py, OAIAttention).
_WHOLE_HEADS: Final = "gpt_oss"
# Of the dtype that a model computes in: vLLM loads float32 checkpoints in 16 bits too (config/model.py,
# _resolve_auto_dtype).
_OWN_DTYPE_BYTES: Final = 2

_DTYPE: Final = re.compile(r"(torch\.)?(half|double|b?float(16|32|64)?|float8_\w+|u?int\d+|auto)")


def shape_from_config(
    config: Mapping[str, Any], source: str, *, weights_bytes: int | None = None
) -> ModelShape:
    """The shape in a parsed config.json.

    Args:
        config: The parsed file.
        source: Its name, for the report and for messages.
        weights_bytes: Size of the model's weights, which no config.json tells.

    Raises:
        InvalidInputError: A field is missing, or the file describes a cache that kvtier cannot size.
    """
    config = with_text_model(config, source)
    fields = ConfigFields(config, source)
    refuse_prefixless(fields)
    refuse_removed(fields)
    _refuse_other_caches(fields)
    groups = layer_groups(fields)
    kinds = {group.kind for group in groups}
    if LayerKind.STATE in kinds:
        refuse_states_of_the_library(fields)
    cache_dtype, has_cache_scales = checkpoint_cache(
        fields, latent=LayerKind.MLA in {group.kind for group in groups}
    )
    model_type, computes_in = fields.text("model_type"), _computes_in(config, fields)
    has_gated_delta = LayerKind.STATE in kinds and model_type.startswith(_GATED_DELTA_NET)
    hidden, matrices, arithmetic = sizes_of(fields)
    notes = []
    if any(group.kind is LayerKind.STATE and group.state is None for group in groups):
        notes.append(
            "the size of this model's linear-attention state is not known: prefixes take somewhat more"
        )
    return ModelShape(
        source=source,
        groups=groups,
        dtype_bytes=_OWN_DTYPE_BYTES,
        cache_dtype=cache_dtype,
        has_cache_scales=has_cache_scales,
        computes_in=computes_in,
        kv_heads_replicated=model_type != _WHOLE_HEADS,
        attention_heads=fields.optional_int("num_attention_heads", "n_head"),
        max_position_tokens=longest_sequence(fields),
        most_position_tokens=length_limit_tokens(fields),
        weights_bytes=weights_bytes,
        experts=experts_of(fields, weights_bytes),
        expert_count=expert_count(fields),
        widths=tuple(shared_widths(config, fields)),
        model_type=model_type,
        quantization=quantization_method(fields),
        mixed_by_modelopt=is_mixed_by_modelopt(fields),
        vocabulary=fields.int_in_file("vocab_size"),
        own_code=_is_own_code(config, fields),
        state_of_class=None if LayerKind.STATE in kinds else _state_of_class(config, fields),
        is_quantised=bool(quantization_of(fields)),
        chunked_attention=is_chunked(fields),
        state_alignment_tokens=_GATED_DELTA_NET_TOKENS if has_gated_delta else 1,
        fp8_by_gpu=model_type in _FP8_BY_GPU,
        images_both_ways=images_both_ways(config, fields),
        media=takes_media_at_all(config, fields),
        attention_beside_states=model_type in _BESIDE_STATES,
        has_sinks=has_sinks(fields),
        unknown_architecture=unknown_architecture(fields),
        arithmetic=arithmetic,
        hidden_size=hidden,
        matrices=matrices,
        parameter_bits=parameter_bits(fields, computes_in),
        notes=tuple(notes),
    )


def has_other_caches(name: str) -> bool:
    """Whether a model of this name keeps caches that no sum of its layers tells."""
    return _OTHER_NAMES.search(name) is not None


def _computes_in(config: Mapping[str, Any], fields: ConfigFields) -> str:
    """The dtype of the published weights, which stands beside a nested language model or in it."""
    parts = (config.get(name) for name in TEXT_CONFIGS)
    levels = (config, *(part for part in parts if isinstance(part, Mapping)))
    dtypes = ((name, level.get(name)) for level in levels for name in ("torch_dtype", "dtype"))
    name, dtype = next(((name, dtype) for name, dtype in dtypes if isinstance(dtype, str)), ("", ""))
    if dtype and _DTYPE.fullmatch(dtype) is None:
        raise fields.error(name, f"got {show_value(dtype)}, must be a dtype of PyTorch's, such as bfloat16")
    return dtype


def _is_own_code(config: Mapping[str, Any], fields: ConfigFields) -> bool:
    """vLLM, transformers_utils/config.py, HFConfigParser.parse."""
    code = config.get("auto_map")
    return (
        isinstance(code, Mapping)
        and "AutoConfig" in code
        and not is_known_type(fields.root_text("model_type"))
    )


def _state_of_class(config: Mapping[str, Any], fields: ConfigFields) -> State | None:
    """A hybrid's class stands for its layers, unless `layer_types` at the root has attention alone.

    Source: vLLM, config/model.py, is_hybrid.
    """
    model_type = fields.text("model_type")
    unseen = not fields.has("layer_types") or isinstance(config.get(_PART), Mapping)
    return recurrent_state(fields) if unseen and model_type.startswith(_HYBRIDS) else None


def _refuse_other_caches(fields: ConfigFields) -> None:
    """A plan without a number is better than one with a wrong one."""
    model_type = fields.text("model_type")
    field = next((name for name in _OTHER_CACHES if fields.get(name)), None)
    if field == "per_layer_config" and model_type.startswith("gemma4"):
        field = None  # what transformers makes of the sizes of full-attention layers
    if field is None and model_type.startswith(_OTHER_TYPES):
        field = "model_type"
    if field is not None:
        raise fields.error(
            field,
            f"model type {model_type or '(none)'} gives layers caches of different shapes, which kvtier "
            "cannot size; set spec.model.geometry.kvBytesPerToken",
        )
    if 0 in fields.numbers("attn_type_list") and not model_type.startswith("minimax_m2"):
        raise fields.error(
            "attn_type_list",
            "vLLM serves MiniMax's lightning attention (0) no more; take MiniMax-M2 or later",
        )


# vLLM, transformers_utils/model_arch_config_convertor.py, derive_max_model_len_and_key.
_FIELDS: Final = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "max_target_positions",
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
)
# Kinds of rotary scaling that max_position_embeddings holds already
# (vLLM, config/model.py, _get_and_verify_max_len).
_SCALED_ALREADY: Final = {
    *("su", "longrope", "llama3", "yarn", "deepseek_yarn", "deepseek_llama_scaling", "default", "mrope"),
}
_LONGROPE: Final = {"su", "longrope"}
_ROPES: Final = ("rope_parameters", "rope_scaling")  # the first that is there counts
_MOST_FACTOR: Final = 10_000


def longest_sequence(config: ConfigFields) -> int | None:
    """Tokens; None where the file does not tell.

    `model_max_length` goes before the others (Command R), and of the others the smallest counts.
    """
    most = length_limit_tokens(config)
    if most is not None and any(_kind(config, name, rope) in _LONGROPE for name, rope in _ropes(config)):
        return config.root_int("original_max_position_embeddings") or most
    return most


def length_limit_tokens(config: ConfigFields) -> int | None:
    """Tokens above which vLLM does not start, whoever asks for them; None where the file does not tell."""
    tokens = config.optional_int("model_max_length") or min(
        (tokens for name in _FIELDS if (tokens := config.optional_int(name))), default=None
    )
    if tokens is None:
        return None
    if "gemma3" in config.root_text("model_type"):  # scaled already
        return tokens
    ropes = _ropes(config)
    factors = [
        _factor(config, name, rope)
        for name, rope in ropes
        if _kind(config, name, rope) not in _SCALED_ALREADY
    ]
    return int(tokens * next((factor for factor in reversed(factors) if factor is not None), 1))


def _ropes(config: ConfigFields) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Rotary settings of the whole file by their field: one, or one for each kind of layer."""
    for name in _ROPES:
        settings = config.root_mapping(name)
        if all(isinstance(setting, Mapping) for setting in settings.values()):
            yield from ((f"{name}.{kind}", setting) for kind, setting in settings.items())
        else:
            yield name, settings
        if settings:
            return


def _factor(config: ConfigFields, name: str, rope: Mapping[str, Any]) -> float | None:
    """What a sequence is stretched by; None where these settings do not say it."""
    factor = rope.get("factor")
    if factor is None:
        return None
    is_number = isinstance(factor, int | float) and not isinstance(factor, bool)
    if not is_number or not 0 < factor <= _MOST_FACTOR:  # NaN is in no range
        raise config.error(
            f"{name}.factor",
            f"got {show_value(factor)}, must be a number above 0 and at most {_MOST_FACTOR:,}",
        )
    return float(factor)


def _kind(config: ConfigFields, name: str, rope: Mapping[str, Any]) -> str:
    """Kind of scaling; empty where the file names none."""
    kind = rope.get("rope_type", rope.get("type"))
    if kind is not None and not isinstance(kind, str):
        raise config.error(f"{name}.rope_type", f"got {show_value(kind)}, must be text")
    return kind or ""
