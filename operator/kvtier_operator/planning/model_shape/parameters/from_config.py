"""How many parameters compute one token of a prompt: of attention, and of the experts that it is sent to.

Embeddings and the head are left out: a token is looked up, and of a prompt only the last one gets logits.
"""

from typing import Final

from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.model_shape.config.fields import ConfigFields
from kvtier_operator.planning.model_shape.layers.latents import keeps_latent
from kvtier_operator.planning.model_shape.layers.layer_groups import kv_heads, one_head_dim
from kvtier_operator.planning.model_shape.layers.layer_parts import LayerParts, layer_parts
from kvtier_operator.planning.model_shape.parameters.arithmetic import Arithmetic

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


def arithmetic(config: ConfigFields) -> Arithmetic | None:
    """From a config.json; None where it does not tell, which is no reason to refuse a model."""
    try:
        return _counted(config)
    except InvalidInputError:
        return None


def _counted(config: ConfigFields) -> Arithmetic | None:
    hidden, parts = config.optional_int("hidden_size", "n_embd", "d_model"), layer_parts(config)
    if not hidden or parts is None:
        return None
    attention = _latent(config, hidden) if keeps_latent(config) else _heads(config, hidden)
    mlps = _mlps(config, hidden, parts)
    if attention is None or mlps is None:
        return None
    total = parts.attention * attention + parts.states * _state(config, hidden) + mlps
    experts = f", {_routed(config)} of {parts.experts} experts in {parts.sparse}" if parts.experts else ""
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
    routed = _routed(config)
    if (parts.dense and not (dense or one)) or (parts.sparse and not (one and routed)):
        return None
    within = config.int_in_file("routed_expert_hidden_size", "moe_latent_size") or hidden
    apart = 2 * hidden * within if within != hidden else 0  # down to the experts' own width, and up again
    experts = matrices * (routed or 0) * (one or 0) * within + apart
    shared = matrices * hidden * _shared(config, one or 0, dense or 0)
    return parts.sparse * (experts + shared) + parts.dense * matrices * hidden * (dense or one or 0)


def _shared(config: ConfigFields, one: int, dense: int) -> int:
    """Inner size of the experts that every token goes through."""
    inner_size = config.int_in_file("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size")
    if inner_size is None:
        number = 1 if config.text("model_type").startswith(_LLAMA4) else 0
        inner_size = one * (config.int_in_file("n_shared_experts", "num_shared_experts") or number)
    beside = dense if config.get("enable_moe_block") is True else 0  # Gemma 4
    return inner_size + beside


def _routed(config: ConfigFields) -> int | None:
    """Experts that each token is sent to."""
    return config.int_in_file(
        *("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "top_k_experts", "moe_topk"),
        "moe_k",
    )
