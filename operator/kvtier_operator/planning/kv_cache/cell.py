"""Bytes that one head, or one latent, takes of one token in each dtype of vLLM's KV cache.

Scales that vLLM stores beside the elements count (AttentionSpec.state_content_size_bytes, as the
attention backends' customize_spec makes it); scales of a whole layer are one number, and do not.
"""

from typing import Final

from kvtier_operator.api.spec.engine import KVCacheDtype
from kvtier_operator.planning.units import ceil_div

_ELEMENT_BYTES: Final = {
    KVCacheDtype.FLOAT16: 2,
    KVCacheDtype.BFLOAT16: 2,
    KVCacheDtype.FP8: 1,
    KVCacheDtype.FP8_E4M3: 1,
    KVCacheDtype.FP8_E5M2: 1,
    KVCacheDtype.FP8_INC: 1,
}
# A latent of DeepSeek's size as one piece: its elements, their scales and the rotary key
# (vLLM, layers/attention/mla_attention.py, get_kv_cache_spec; backends/mla/flashmla_sparse.py).
_PACKED_LATENT_BYTES: Final = {KVCacheDtype.FP8_DS_MLA: 656, KVCacheDtype.NVFP4_DS_MLA: 352}
# Bits of one element, with a float32 scale for the key and one for the value of each token and head
# (vLLM, backends/triton_attn.py, customize_spec).
_PER_TOKEN_HEAD_BITS: Final = {
    KVCacheDtype.INT4_PER_TOKEN_HEAD: 4,
    KVCacheDtype.INT8_PER_TOKEN_HEAD: 8,
    KVCacheDtype.FP8_PER_TOKEN_HEAD: 8,
}
_FLOAT32_BYTES: Final = 4
# Bits of a key and of a value (vLLM, layers/quantization/turboquant/config.py, TQ_PRESETS). A key of less
# than 8 bits has a norm of 2 bytes, a value its scale and zero point in 4.
_TURBOQUANT_BITS: Final = {
    KVCacheDtype.TURBOQUANT_K8V4: (8, 4),
    KVCacheDtype.TURBOQUANT_4BIT_NC: (4, 4),
    KVCacheDtype.TURBOQUANT_K3V4_NC: (3, 4),
    KVCacheDtype.TURBOQUANT_3BIT_NC: (3, 3),
}
_TURBOQUANT_NORM_BYTES: Final = 2
_TURBOQUANT_VALUE_BYTES: Final = 4
_BYTE_BITS: Final = 8
# Elements that share a one-byte scale (vLLM, utils/torch_utils.py, nvfp4_kv_cache_full_dim;
# v1/attention/ops/ultraquant/format.py, slot_size).
_SCALED_TOGETHER: Final = {
    KVCacheDtype.NVFP4: 16,
    KVCacheDtype.NVFP4_4OVER6: 16,
    KVCacheDtype.ULTRAQUANT_4BIT: 32,
}

BOUNDARY_LAYERS: Final = 2
"""First and last layers that `packs_keys_and_values` leaves in the model's own dtype
(vLLM, layers/quantization/turboquant/config.py, get_boundary_skip_layers)."""


def cell_bytes(dtype: KVCacheDtype, key_dim: int, value_dim: int, own_bytes: int) -> int:
    """Bytes of one token in one head, key and value, or in one latent.

    Args:
        dtype: Of the cache, as `--kv-cache-dtype` names it.
        key_dim: Size of the key, or of the latent with its rotary key.
        value_dim: Size of the value; 0 for a latent, which is both.
        own_bytes: Bytes of one element in the dtype that the model computes in, for `auto`.
    """
    if dtype in _PACKED_LATENT_BYTES:
        return _PACKED_LATENT_BYTES[dtype]
    if bits := _PER_TOKEN_HEAD_BITS.get(dtype):
        return key_dim * bits // _BYTE_BITS + value_dim * bits // _BYTE_BITS + 2 * _FLOAT32_BYTES
    if dtype in _TURBOQUANT_BITS:
        return _turboquant_bytes(*_TURBOQUANT_BITS[dtype], key_dim, value_dim)
    if together := _SCALED_TOGETHER.get(dtype):
        return sum(dim // 2 + dim // together for dim in (key_dim, value_dim))
    return (key_dim + value_dim) * _ELEMENT_BYTES.get(dtype, own_bytes)


def packs_keys_and_values(dtype: KVCacheDtype) -> bool:
    """Whether a key and its value are one piece, which vLLM keeps the first and the last layers out of."""
    return dtype in _TURBOQUANT_BITS or dtype is KVCacheDtype.ULTRAQUANT_4BIT


def _turboquant_bytes(key_bits: int, value_bits: int, key_dim: int, value_dim: int) -> int:
    norm = 0 if key_bits == _BYTE_BITS else _TURBOQUANT_NORM_BYTES
    key = ceil_div(key_dim * key_bits, _BYTE_BITS) + norm
    value = ceil_div(value_dim * value_bits, _BYTE_BITS) + _TURBOQUANT_VALUE_BYTES
    return ceil_div(key + value, 2) * 2
