"""Kinds of models beside the one that all sides serve: each answers from the tier as from the device."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kvtier_connector.bench.choices import SHAPES

_SMALL: Final = dict(SHAPES["qwen3-0.6b"].config)
_MLA: Final[Mapping[str, Any]] = {
    "architectures": ["DeepseekV2ForCausalLM"],
    "model_type": "deepseek_v2",
    "hidden_size": 2048,
    "num_hidden_layers": 12,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "intermediate_size": 6144,
    "kv_lora_rank": 512,
    "q_lora_rank": None,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "first_k_dense_replace": 12,  # all of them: the kernels of experts are no business of a tier
    "n_routed_experts": 8,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 1408,
    "n_group": 1,
    "topk_group": 1,
    "moe_layer_freq": 1,
    "vocab_size": 32_000,
    "max_position_embeddings": 32_768,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
_STATES: Final[Mapping[str, Any]] = {
    "architectures": ["Lfm2ForCausalLM"],
    "model_type": "lfm2",
    "hidden_size": 2048,
    "num_hidden_layers": 8,
    "layer_types": ["conv", "conv", "full_attention", "conv"] * 2,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 8192,
    "block_dim": 2048,
    "block_ff_dim": 8192,
    "block_multiple_of": 256,
    "block_auto_adjust_ff_dim": True,
    "block_ffn_dim_multiplier": 1.0,
    "conv_dim": 2048,
    "conv_dim_out": 2048,
    "conv_L_cache": 3,
    "conv_bias": False,
    "norm_eps": 1e-5,
    "rope_theta": 1_000_000.0,
    "vocab_size": 65_536,
    "max_position_embeddings": 128_000,
    "torch_dtype": "bfloat16",
}
_WINDOWS: Final[Mapping[str, Any]] = {
    **_SMALL,
    "architectures": ["Gemma3ForCausalLM"],
    "model_type": "gemma3_text",
    "num_hidden_layers": 12,
    "layer_types": [*["sliding_attention"] * 5, "full_attention"] * 2,
    "sliding_window": 1024,
    "sliding_window_pattern": 6,
    "query_pre_attn_scalar": 128,
    "hidden_activation": "gelu_pytorch_tanh",
    "vocab_size": 65_536,
    "tie_word_embeddings": True,
}
_LOOKUP: Final = (
    '--speculative-config={"method":"ngram","num_speculative_tokens":3,"prompt_lookup_max":4,'
    '"prompt_lookup_min":2}'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of model, planned as a resource of its own."""

    title: str
    config: Mapping[str, Any] = field(default_factory=lambda: _SMALL)  # config.json
    engine: Mapping[str, Any] = field(default_factory=dict)  # `spec.engine`


KINDS: Final[Mapping[str, Kind]] = {
    "fp8": Kind(title="full attention, fp8 cache", engine={"kvCacheDtype": "fp8"}),
    "mla": Kind(title="MLA", config=_MLA),
    "hybrid": Kind(title="states beside attention (LFM2)", config=_STATES),
    "windows": Kind(title="sliding windows (gemma-3)", config=_WINDOWS),
    "speculation": Kind(title="speculation (n-gram)", engine={"extraArgs": [_LOOKUP]}),
    "mla-fp8": Kind(title="MLA, fp8 cache", config=_MLA, engine={"kvCacheDtype": "fp8"}),
}
"""The most important first; all with tensor parallel size 1. A new one is one line."""
