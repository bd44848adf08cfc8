"""How many parameters a model has, and how many bits each takes."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.model_shape.config.checkpoint import quantization_of
from kvtier_operator.planning.model_shape.config.fields import ConfigFields
from kvtier_operator.planning.model_shape.layers.layer_groups import kv_heads, one_head_dim
from kvtier_operator.planning.model_shape.layers.layer_parts import LayerParts, keeps_latent, layer_parts
from kvtier_operator.planning.model_shape.shape import Arithmetic, Experts

_Read = TypeVar("_Read")
_OF_ATTENTION: Final = 4
"""Queries, keys, values, output; of a state about as many."""
_OF_AN_MLP: Final = 3


def sizes_of(config: ConfigFields) -> tuple[int | None, int | None, Arithmetic | None]:
    """Hidden size, matrices at most, and what computes one token; None for what a config.json does not tell.

    That is no reason to refuse a model.
    """
    hidden = _or_none(lambda: config.optional_int("hidden_size", "n_embd", "d_model"))
    parts = _or_none(lambda: layer_parts(config))
    if parts is None:
        return hidden, None, None
    mlps = parts.dense + parts.sparse * (parts.experts + 1)  # one for what every token goes through
    matrices = _OF_ATTENTION * (parts.attention + parts.states) + _OF_AN_MLP * mlps
    return hidden, matrices, _or_none(lambda: _arithmetic(config, hidden, parts)) if hidden else None


def _or_none(read: Callable[[], _Read | None]) -> _Read | None:
    try:
        return read()
    except InvalidInputError:
        return None


PLAIN_BITS: Final = 16
_FLOAT32_BITS: Final = 32
_BITS_FIELDS: Final = ("bits", "w_bit", "weight_bits", "num_bits")
_BY_NAME: Final = (("fp4", 4), ("w4", 4), ("int4", 4), ("awq", 4), ("gptq", 4), ("fp8", 8), ("int8", 8))
"""What is in the name of a method or an algorithm."""
_SCALES: Final = {"fp8": 0.0, "mxfp4": 0.25, "FP8": 0.0, "NVFP4": 0.5}
"""Bits of a parameter's part of a scale, by method, or by ModelOpt's algorithm."""
_BY_GROUPS: Final = ("awq", "gptq", "compressed-tensors", "auto-round")
"""Methods with a scale for each group of weights."""
_GROUP_BITS, _GROUP_SIZE = 4, 128
_SCALE_BITS, _FLOAT_SCALE_BITS = 16, 8


def parameter_bits(config: ConfigFields, computes_in: str) -> int:
    """Of the most of them, scales left out."""
    quantization = quantization_of(config)
    if not quantization:
        return _FLOAT32_BITS if computes_in == "float32" else PLAIN_BITS
    return _bits_in_file(quantization) or _bits_by_name(quantization) or PLAIN_BITS


def expert_bits(config: ConfigFields) -> float | None:
    """Of one of a routed expert, with its part of the scales; None where not known."""
    quantization = quantization_of(config)
    if not quantization:
        return PLAIN_BITS
    scale_bits = _scale_bits(quantization)
    if scale_bits is None:
        return None
    return (_bits_in_file(quantization) or _bits_by_name(quantization) or _GROUP_BITS) + scale_bits


def _bits_in_file(quantization: Mapping[str, Any]) -> int | None:
    """A number of bits, beside the method or of a group of layers' weights."""
    parts = (quantization, *weights_of_groups(quantization))
    numbers = (part.get(name) for part in parts for name in _BITS_FIELDS)
    return next((bits for bits in numbers if type(bits) is int and bits > 0), None)


def _bits_by_name(quantization: Mapping[str, Any]) -> int | None:
    if quantization.get("load_in_4bit") is True:
        return 4
    parts = (_inner(quantization), quantization)
    methods = [str(part.get(name)).lower() for part in parts for name in ("quant_algo", "quant_method")]
    return next((bits for text in methods for word, bits in _BY_NAME if word in text), None)


def _scale_bits(quantization: Mapping[str, Any]) -> float | None:
    method = str(quantization.get("quant_method", "")).lower().replace("_", "-")
    algorithm = _inner(quantization).get("quant_algo")
    if (known := _SCALES.get(str(algorithm or method))) is not None:
        return known
    if method not in _BY_GROUPS:
        return None
    weights = next(iter(weights_of_groups(quantization)), quantization)
    size = weights.get("group_size", _GROUP_SIZE)
    if size is None or (type(size) is int and size <= 0):
        return 0.0  # one scale for all
    scale_bits = _FLOAT_SCALE_BITS if weights.get("type") == "float" else _SCALE_BITS
    return scale_bits / size if type(size) is int else None


def _inner(quantization: Mapping[str, Any]) -> Mapping[str, Any]:
    """Where ModelOpt names its algorithm."""
    inner = quantization.get("quantization")
    return inner if isinstance(inner, Mapping) else quantization


def weights_of_groups(quantization: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What is said of the weights of each group of layers (compressed-tensors)."""
    groups = quantization.get("config_groups")
    within = groups.values() if isinstance(groups, Mapping) else ()
    weights = [group.get("weights", group) for group in within if isinstance(group, Mapping)]
    return [part for part in weights if isinstance(part, Mapping)]


# Source: vLLM, layers/fused_moe/config.py, FusedMoEParallelConfig.make. What stands beside them,
# attention, shared experts and embeddings, is on every data-parallel engine.
_COUNTS: Final = ("n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts")
_WIDTHS: Final = ("moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size")
_HIDDEN: Final = ("routed_expert_hidden_size", "moe_latent_size", "hidden_size")
_LAYERS: Final = ("num_hidden_layers", "num_layers")
_PREDICTORS: Final = ("num_nextn_predict_layers", "mtp_num_hidden_layers")
"""Of checkpoints that have them; those that `num_mtp_modules` counts are not published (MiniMax-M2)."""
_DENSE_FIRST: Final = ("first_k_dense_replace", "num_dense_layers")
_FREQUENCY: Final = "moe_layer_freq"
_PERIODS: Final = (
    *(_FREQUENCY, "interleave_moe_layer_step", "decoder_sparse_step"),
    *("expert_layer_period", "moe_layer_interval"),
)
_KINDS: Final = ("mlp_layer_types", "layers_block_type", "hybrid_override_pattern")
_OF_EXPERTS: Final = frozenset({"sparse", "moe", "E"})
_MOE: Final = "moe"
_ALWAYS: Final = (
    "mixtral",
    "deepseek_v",
    "gpt_oss",
    "minimax",
    "llama4",
    "kimi_k",
    "longcat",
    "jamba",
    "dbrx",
)
"""How model types begin whose files may leave the number of experts to the class."""
_WITHOUT_GATE: Final = "nemotron_h"
_GATED_MATRICES, _PLAIN_MATRICES = 3, 2


def experts_of(fields: ConfigFields, weights_bytes: int | None) -> Experts | None:
    """The routed experts that a config.json describes; None where it does not tell enough."""
    count = _number(fields, _COUNTS)
    if count is not None and count <= 1:
        return Experts()
    if count is None:
        return None if _may_have(fields) else Experts()
    width, hidden, layers = _number(fields, _WIDTHS), _number(fields, _HIDDEN), _layers(fields)
    bits = expert_bits(fields)
    if not (width and hidden and layers and bits):
        return None
    plain = fields.text("model_type").startswith(_WITHOUT_GATE)
    elements = layers * count * hidden * width * (_PLAIN_MATRICES if plain else _GATED_MATRICES)
    return Experts(int(elements * bits / 8), weights_bytes)


def expert_count(fields: ConfigFields) -> int | None:
    """Routed experts of one layer; 0 for a dense model, None where nothing tells."""
    count = _number(fields, _COUNTS)
    return (None if _may_have(fields) else 0) if count is None else count


def _number(fields: ConfigFields, names: tuple[str, ...]) -> int | None:
    """First of these; None where none is there or it is not understood, such as a list of numbers."""
    value = fields.get(*names)
    return value if isinstance(value, int) and value >= 0 else None


def _may_have(fields: ConfigFields) -> bool:
    """Whether a file without a number of experts that is understood may be of a model that has some."""
    if fields.text("model_type").startswith(_ALWAYS) or _MOE in fields.text("model_type"):
        return True
    return any(fields.get(name) for name in fields.names if "expert" in name or _MOE in name)


def _layers(fields: ConfigFields) -> int | None:
    """Layers with experts, those that predict tokens further on among them."""
    layers = _number(fields, _LAYERS)
    if not layers:
        return None
    predictors = _number(fields, _PREDICTORS) or 0
    for name in _KINDS:
        kinds = fields.word(name) or fields.strings(name)
        if count := sum(kind in _OF_EXPERTS for kind in kinds):
            return count + predictors
    if (frequency := fields.get(_FREQUENCY)) and not isinstance(frequency, int):
        return sum(fields.numbers(_FREQUENCY)) + predictors
    dense = _number(fields, _DENSE_FIRST) or len(fields.numbers("mlp_only_layers"))
    return (layers - dense) // (_number(fields, _PERIODS) or 1) + predictors


# Embeddings and the head are left out: a token is looked up, and of a prompt only the last one gets logits.
# Their MLPs have two matrices, without a gate; so have those with Nemotron's activation.
_NO_GATE: Final = {
    "opt",
    "gpt2",
    "gpt_neox",
    "gptj",
    "bloom",
    "falcon",
    "mpt",
    "phi",
    "starcoder2",
    "nemotron",
}
_NO_GATE_ACTIVATION: Final = "relu2"
_LLAMA4: Final = "llama4"
_STATE_SQUARES: Final = 4
"""Hidden sizes squared that a state's layer is taken to have where its file says no more."""


def _arithmetic(config: ConfigFields, hidden: int, parts: LayerParts) -> Arithmetic | None:
    attention = _latent(config, hidden) if keeps_latent(config) else _heads(config, hidden)
    mlps = _mlps(config, hidden, parts)
    if attention is None or mlps is None:
        return None
    total = parts.attention * attention + parts.states * _state(config, hidden) + mlps
    experts = f", {_top_k(config)} of {parts.experts} experts in {parts.sparse}" if parts.experts else ""
    how = f"{parts.layers} layers of config.json{experts}; embeddings and head compute no prompt"
    return Arithmetic(total, how)


def _heads(config: ConfigFields, hidden: int) -> int | None:
    heads = config.optional_int("num_attention_heads", "n_head", "n_heads")
    if not heads:
        return None
    return (
        hidden * one_head_dim(config) * 2 * (heads + kv_heads(config))
    )  # queries and output, keys and values


def _latent(config: ConfigFields, hidden: int) -> int | None:
    """DeepSeek's: queries and latent down and up again, output."""
    heads, rank = config.optional_int("num_attention_heads"), config.optional_int("kv_lora_rank")
    nope, value = config.optional_int("qk_nope_head_dim"), config.optional_int("v_head_dim")
    if not heads or not rank or not nope or not value:
        return None
    rope, q_rank = config.optional_int("qk_rope_head_dim") or 0, config.optional_int("q_lora_rank")
    query = heads * (nope + rope)
    queries = q_rank * (hidden + query) if q_rank else hidden * query
    return queries + hidden * (rank + rope) + rank * heads * (nope + value) + heads * value * hidden


def _state(config: ConfigFields, hidden: int) -> int:
    """Of one layer: Gated DeltaNet, Kimi's delta attention and Mamba 2 by their heads."""
    keys = (config.int_in_file("linear_num_key_heads") or 0) * (
        config.int_in_file("linear_key_head_dim") or 0
    )
    values = (config.int_in_file("linear_num_value_heads") or 0) * (
        config.int_in_file("linear_value_head_dim") or 0
    )
    if values:  # queries and keys; values, gate and output
        return hidden * (2 * keys + 3 * values)
    kimi = config.mapping("linear_attn_config")
    heads, dim = kimi.get("num_heads"), kimi.get("head_dim")
    if isinstance(heads, int) and isinstance(dim, int):  # queries, keys, values, gate, output
        return 5 * hidden * heads * dim
    mamba = (config.int_in_file("mamba_num_heads", "mamba_n_heads") or 0) * (
        config.int_in_file("mamba_head_dim", "mamba_d_head") or 0
    )
    return 3 * hidden * mamba or _STATE_SQUARES * hidden * hidden  # input, gate, output


def _mlps(config: ConfigFields, hidden: int, parts: LayerParts) -> int | None:
    """Of all layers' MLPs and experts together."""
    gated = config.text("model_type") not in _NO_GATE
    matrices = 3 if gated and config.text("mlp_hidden_act") != _NO_GATE_ACTIVATION else 2
    dense = config.int_in_file(
        *("intermediate_size_mlp", "dense_intermediate_size", "intermediate_size", "ffn_dim", "n_inner")
    )
    one = config.int_in_file("moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size")
    routed = _top_k(config)
    if (parts.dense and not (dense or one)) or (parts.sparse and not (one and routed)):
        return None
    within = config.int_in_file("routed_expert_hidden_size", "moe_latent_size") or hidden
    apart = 2 * hidden * within if within != hidden else 0  # down to the experts' own width, and up again
    experts = matrices * (routed or 0) * (one or 0) * within + apart
    shared = matrices * hidden * _shared_width(config, one or 0, dense or 0)
    return parts.sparse * (experts + shared) + parts.dense * matrices * hidden * (dense or one or 0)


def _shared_width(config: ConfigFields, one: int, dense: int) -> int:
    """Inner size of the experts that every token goes through."""
    inner_size = config.int_in_file("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size")
    if inner_size is None:
        number = 1 if config.text("model_type").startswith(_LLAMA4) else 0
        inner_size = one * (config.int_in_file("n_shared_experts", "num_shared_experts") or number)
    beside = dense if config.get("enable_moe_block") is True else 0  # Gemma 4
    return inner_size + beside


def _top_k(config: ConfigFields) -> int | None:
    """Experts that each token is sent to."""
    return config.int_in_file(
        *("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "top_k_experts", "moe_topk"),
        "moe_k",
    )
