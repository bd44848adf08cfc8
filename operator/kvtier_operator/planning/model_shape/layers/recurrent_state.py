"""What a linear-attention, Mamba or convolution layer keeps of one sequence, from a model's config.json."""

from typing import Final

from kvtier_operator.planning.model_shape.config.fields import ConfigFields
from kvtier_operator.planning.model_shape.shape import Recurrence, State

_BYTES: Final = {"float32": 4, "bfloat16": 2, "float16": 2}
_FLOAT32_BYTES: Final = 4
# Architectures that read their state's dtype from the file, and what they take without it
# (vLLM, models/config.py, MODELS_CONFIG_MAP: NemotronHForCausalLMConfig and Qwen3_5...Config).
_NEMOTRON: Final = {
    *("NemotronHForCausalLM", "NemotronHPuzzleForCausalLM", "NemotronH_Nano_VL_V2"),
    *("nemotron_h", "nemotron_h_puzzle"),
}
_OLMO_HYBRID: Final = "olmo_hybrid"
_QWEN: Final = ("Qwen3_5", "Qwen4Exp", "qwen3_5", "qwen4_exp")


def recurrent_state(config: ConfigFields) -> State | None:
    """One layer's state as vLLM shapes it (get_mamba_state_shape_from_config of each model's class).

    Returns:
        None for a kind of state that is not known here: the tier's tokens do not depend on it.
    """
    states = (read(config) for read in (_kda, _lightning, _gated_delta_net, _short_conv, _mamba2, _mamba1))
    return next((state for state in states if state is not None), None)


def _state_bytes(config: ConfigFields) -> int:
    """Bytes of one recurrent element; 0 for as many as the model's dtype has."""
    names = (*config.strings("architectures"), config.text("model_type"))
    if any(name in _NEMOTRON for name in names):
        return _BYTES.get(config.text("mamba_ssm_cache_dtype"), _FLOAT32_BYTES)
    if any(name.startswith(_QWEN) for name in names):
        return _BYTES.get(config.text("mamba_ssm_dtype"), 0)
    return 0


def _kda(config: ConfigFields) -> State | None:
    """Kimi Delta Attention: Kimi Linear and K3, Ling 3, GLM 5 next; recurrent in float32."""
    recurrence = Recurrence.KDA
    linear = config.part("linear_attn_config")
    if linear.has("num_heads", "head_dim"):
        heads, head_dim = linear.int("num_heads"), linear.int("head_dim")
        kernel = linear.optional_int("short_conv_kernel_size") or 4
    elif config.has("linear_num_heads"):
        heads, head_dim = config.int("linear_num_heads"), config.int("linear_head_dim")
        kernel = config.optional_int("linear_conv_kernel_dim") or 4
    elif config.has("layer_group_size") and config.has("short_conv_kernel_size"):
        heads, head_dim = config.int("num_attention_heads"), config.int("head_dim")
        kernel = config.int("short_conv_kernel_size")
        recurrence = Recurrence.OWN  # vLLM, models/bailing_moe_v3.py
    else:
        return None
    return State(
        channels=3 * heads * head_dim,
        tokens=kernel - 1,
        recurrent_elements=heads * head_dim * head_dim,
        recurrent_bytes=_FLOAT32_BYTES,
        heads=(heads,),
        recurrence=recurrence,
    )


def _lightning(config: ConfigFields) -> State | None:
    """Lightning attention of Ling 2.5, which has no convolution."""
    if not config.has("layer_group_size"):
        return None
    heads = config.int("num_attention_heads")
    head_dim = config.optional_int("head_dim") or config.int("hidden_size") // heads
    return State(recurrent_elements=heads * head_dim * head_dim, heads=(heads,), recurrence=Recurrence.OWN)


def _gated_delta_net(config: ConfigFields) -> State | None:
    """Qwen3-Next, Qwen3.5, OLMo hybrid."""
    if config.text("model_type") == _OLMO_HYBRID:
        key_heads, value_heads, key_dim, value_dim = _of_olmo(config)
    elif config.has("linear_num_value_heads"):
        key_heads, value_heads = config.int("linear_num_key_heads"), config.int("linear_num_value_heads")
        key_dim, value_dim = config.int("linear_key_head_dim"), config.int("linear_value_head_dim")
    else:
        return None
    return State(
        channels=2 * key_dim * key_heads + value_dim * value_heads,
        tokens=config.int("linear_conv_kernel_dim") - 1,
        recurrent_elements=value_heads * value_dim * key_dim,
        recurrent_bytes=_state_bytes(config),
        heads=(key_heads, value_heads),
    )


def _of_olmo(config: ConfigFields) -> tuple[int, int, int, int]:
    """Heads and their sizes, which transformers works out where they are left out (OlmoHybridConfig)."""
    heads = config.int("num_attention_heads")
    key_heads = config.optional_int("linear_num_key_heads") or heads
    value_heads = config.optional_int("linear_num_value_heads") or heads
    key_dim = config.optional_int("linear_key_head_dim") or 3 * config.int("hidden_size") // (4 * key_heads)
    return key_heads, value_heads, key_dim, config.optional_int("linear_value_head_dim") or 2 * key_dim


def _short_conv(config: ConfigFields) -> State | None:
    """Short convolutions of LFM2, dense and of experts."""
    if not config.has("conv_L_cache"):
        return None
    channels = config.optional_int("conv_dim") if config.text("model_type") == "lfm2" else None
    return State(
        channels=channels or config.int("hidden_size"),
        tokens=config.int("conv_L_cache") - 1,
        draft_tokens=False,
    )


def _mamba2(config: ConfigFields) -> State | None:
    """Nemotron-H, Bamba, Granite 4, Falcon-H1, Zamba2."""
    if not config.has("mamba_num_heads", "mamba_n_heads", "n_mamba_heads"):
        return None
    heads = config.int("mamba_num_heads", "mamba_n_heads", "n_mamba_heads")
    head_dim = _mamba2_head_dim(config, heads)
    elements = config.int("ssm_state_size", "mamba_d_state")
    groups = config.optional_int("n_groups", "mamba_n_groups", "mamba_ngroups") or 1
    return State(
        channels=_mamba2_width(config, heads * head_dim),
        group_channels=2 * elements,
        groups=groups,
        tokens=config.int("conv_kernel", "mamba_d_conv") - 1,
        recurrent_elements=heads * head_dim * elements,
        recurrent_bytes=_state_bytes(config),
        # one group is kept by every rank (vLLM, layers/mamba/mamba_mixer2.py)
        heads=(heads, groups) if groups > 1 else (heads,),
    )


def _mamba2_head_dim(config: ConfigFields, heads: int) -> int:
    """Size of a head; transformers works it out for `auto`, and for Zamba2 where nothing is said."""
    names = ("mamba_head_dim", "mamba_d_head", "mamba_headdim")
    head_dim = config.get(*names)
    if head_dim is not None and head_dim != "auto":  # what is no number is refused by its name
        return config.int(*names)
    width = config.optional_int("mamba_d_ssm") or config.int("mamba_expand") * config.int("hidden_size")
    return width // heads


def _mamba2_width(config: ConfigFields, own: int) -> int:
    if config.has("mamba_num_heads"):  # Nemotron-H, whose `expand` is not what vLLM multiplies by
        return own
    if width := config.optional_int("mamba_d_ssm"):
        return width
    expand = config.optional_int("mamba_expand")
    return expand * config.int("hidden_size") if expand else own


def _mamba1(config: ConfigFields) -> State | None:
    """Jamba, and Mamba itself."""
    if not config.has("mamba_d_state", "state_size"):
        return None
    inner = config.optional_int("intermediate_size") if config.has("state_size") else None
    inner = inner or (config.optional_int("mamba_expand", "expand") or 2) * config.int("hidden_size")
    return State(
        channels=inner,
        tokens=config.int("mamba_d_conv", "conv_kernel") - 1,
        draft_tokens=False,
        recurrent_elements=inner * config.int("mamba_d_state", "state_size"),
    )
