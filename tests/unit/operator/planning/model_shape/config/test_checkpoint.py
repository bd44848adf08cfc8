"""What a quantised checkpoint says of the KV cache."""

from typing import Any

import pytest

from kvtier_operator.api.spec.engine import KVCacheDtype
from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.model_shape.from_config import shape_from_config

BASE = {"num_hidden_layers": 12, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64}
LATENT = BASE | {"kv_lora_rank": 512, "qk_rope_head_dim": 64}
AUTO, FP8, E4M3, NVFP4 = KVCacheDtype.AUTO, KVCacheDtype.FP8, KVCacheDtype.FP8_E4M3, KVCacheDtype.NVFP4
SCHEME = {"num_bits": 8, "type": "float", "strategy": "tensor", "symmetric": True}
LLM_COMPRESSOR = {"quant_method": "compressed-tensors", "kv_cache_scheme": SCHEME}


def modelopt(**quantization: Any) -> dict[str, Any]:  # noqa: ANN401 - hf_quant_config.json's fields
    return {"producer": {"name": "modelopt"}, "quantization": quantization}


@pytest.mark.parametrize(
    ("quantization", "dtype", "has_scales"),
    [
        ({"quant_method": "awq", "bits": 4}, AUTO, False),
        ({"quant_method": "gptq", "bits": 4}, AUTO, False),
        ({"quant_method": "mxfp4"}, AUTO, False),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, AUTO, True),  # the weights alone
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": None}, AUTO, False),
        (LLM_COMPRESSOR, FP8, True),
        (LLM_COMPRESSOR | {"quant_method": "compressed_tensors"}, FP8, True),
        (modelopt(quant_algo="FP8", kv_cache_quant_algo="FP8"), E4M3, True),
        (modelopt(quant_algo="NVFP4", kv_cache_quant_algo="NVFP4"), NVFP4, True),
        (modelopt(quant_algo="NVFP4", kv_cache_quant_algo=None), AUTO, True),
        (modelopt(quant_algo="FP8", kv_cache_quant_algo="INT8"), AUTO, True),  # vLLM warns, and takes auto
        ({"quant_method": "modelopt", "quantization": {"kv_cache_quant_algo": "FP8"}}, E4M3, True),
        (
            {
                "quant_method": "modelopt",
                "kv_cache_scheme": {"num_bits": 8, "type": "float", "dynamic": False},
            },
            E4M3,
            True,
        ),
        ({"quant_method": "modelopt", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}, AUTO, True),
        ({"quant_method": "modelopt", "kv_cache_scheme": {"num_bits": 4, "type": "float"}}, NVFP4, True),
        ({"kv_cache_quant_algo": "FP8"}, AUTO, False),  # nobody says who wrote it
    ],
)
def test_what_it_says(quantization: dict[str, Any], dtype: KVCacheDtype, has_scales: bool) -> None:
    shape = shape_from_config(BASE | {"quantization_config": quantization}, "config.json")
    assert (shape.cache_dtype, shape.has_cache_scales) == (dtype, has_scales)


def test_a_language_model_within() -> None:
    nested = {"text_config": BASE | {"quantization_config": LLM_COMPRESSOR}}
    assert shape_from_config(nested, "config.json").cache_dtype is FP8
    # vLLM looks for ModelOpt's word at the root alone
    nested = {
        "text_config": BASE | {"quantization_config": modelopt(quant_algo="FP8", kv_cache_quant_algo="FP8")}
    }
    assert shape_from_config(nested, "config.json").cache_dtype is AUTO


def test_a_latent_is_not_asked_about_compressed_tensors_scheme() -> None:
    assert shape_from_config(LATENT | {"quantization_config": LLM_COMPRESSOR}, "x").cache_dtype is AUTO
    quantization = modelopt(quant_algo="NVFP4", kv_cache_quant_algo="FP8")
    assert shape_from_config(LATENT | {"quantization_config": quantization}, "x").cache_dtype is E4M3


@pytest.mark.parametrize(
    ("quantization", "words"),
    [
        (modelopt(quant_algo="W4A8_AWQ"), ("quant_algo", "'W4A8_AWQ'", "NVFP4")),
        (
            LLM_COMPRESSOR | {"kv_cache_scheme": SCHEME | {"num_bits": 4}},
            ("num_bits", "got 4", "only with 8"),
        ),
        (LLM_COMPRESSOR | {"kv_cache_scheme": SCHEME | {"type": "int"}}, ("type", "'int'", "float")),
        (LLM_COMPRESSOR | {"kv_cache_scheme": SCHEME | {"strategy": "token"}}, ("strategy", "attn_head")),
        (LLM_COMPRESSOR | {"kv_cache_scheme": SCHEME | {"symmetric": False}}, ("symmetric", "true")),
    ],
)
def test_one_that_vllm_does_not_load(quantization: dict[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInputError) as refused:
        shape_from_config(BASE | {"quantization_config": quantization}, "config.json")
    for word in ("config.json: quantization_config", *words):
        assert word in str(refused.value)
