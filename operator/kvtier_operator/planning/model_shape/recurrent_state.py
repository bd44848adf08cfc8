"""The fixed state that a linear-attention or Mamba layer keeps of one sequence."""

from typing import Final

from kvtier_operator.planning.model_shape.config_fields import ConfigFields

_BYTES: Final = {"float32": 4, "bfloat16": 2, "float16": 2}
_MODEL_DTYPE_BYTES: Final = 2


def state_bytes(config: ConfigFields) -> int | None:
    """Bytes of one layer's state, all ranks together: convolution window plus recurrent state.

    The shapes are those of vLLM's MambaStateShapeCalculator (model_executor/layers/mamba/mamba_utils.py)
    at tensor-parallel size 1; the convolution window is in the model's dtype and the recurrent state in
    `mamba_ssm_dtype` where the file gives one.

    Returns:
        None for a kind of state that is not known here: the tier's tokens do not depend on it.
    """
    shape = _gated_delta_net(config) or _mamba2(config) or _mamba1(config)
    if shape is None:
        return None
    convolution, recurrent = shape
    dtype_bytes = _BYTES.get(config.text("mamba_ssm_dtype", "mamba_ssm_cache_dtype"), _MODEL_DTYPE_BYTES)
    return convolution * _MODEL_DTYPE_BYTES + recurrent * dtype_bytes


def _gated_delta_net(config: ConfigFields) -> tuple[int, int] | None:
    if not config.has("linear_num_value_heads"):
        return None
    key_dim, value_dim = config.int("linear_key_head_dim"), config.int("linear_value_head_dim")
    key_heads, value_heads = config.int("linear_num_key_heads"), config.int("linear_num_value_heads")
    width = 2 * key_dim * key_heads + value_dim * value_heads
    return width * (config.int("linear_conv_kernel_dim") - 1), value_heads * value_dim * key_dim


def _mamba2(config: ConfigFields) -> tuple[int, int] | None:
    if not config.has("mamba_num_heads", "mamba_n_heads"):
        return None
    heads = config.int("mamba_num_heads", "mamba_n_heads")
    head_dim = config.int("mamba_head_dim", "mamba_d_head")
    state = config.int("ssm_state_size", "mamba_d_state")
    groups = config.optional_int("n_groups", "mamba_n_groups") or 1
    kernel = config.int("conv_kernel", "mamba_d_conv")
    return (heads * head_dim + 2 * groups * state) * (kernel - 1), heads * head_dim * state


def _mamba1(config: ConfigFields) -> tuple[int, int] | None:
    if not config.has("mamba_d_state", "state_size"):
        return None
    inner = config.optional_int("intermediate_size") if config.has("state_size") else None
    inner = inner or (config.optional_int("mamba_expand", "expand") or 2) * config.int("hidden_size")
    state, kernel = config.int("mamba_d_state", "state_size"), config.int("mamba_d_conv", "conv_kernel")
    return inner * (kernel - 1), inner * state
