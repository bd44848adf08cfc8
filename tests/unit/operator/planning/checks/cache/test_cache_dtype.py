from typing import Any

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import check_input, resource

from kvtier_operator.planning.checks.cache_format import cache_dtype
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.verdict import Outcome

LLAMA = {"num_hidden_layers": 12, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64}
FLOAT32 = ["--dtype", "float32"]


def test_float32_into_a_bfloat16_cache_on_the_cpu() -> None:
    one = resource(engine={"device": "cpu", "kvCacheDtype": "bfloat16", "extraArgs": FLOAT32})
    result = verdict(cache_dtype, one)
    says(result, REJECT, "CacheDtypeNotSupported", "set kvCacheDtype to auto")
    assert result.field == "spec.engine.kvCacheDtype"


def test_the_cache_follows_the_model() -> None:
    says(verdict(cache_dtype, resource(engine={"device": "cpu", "extraArgs": FLOAT32})), PASS, "Passed")
    says(verdict(cache_dtype, resource(engine={"kvCacheDtype": "bfloat16"})), PASS, "Passed")


@pytest.mark.parametrize(
    ("model", "engine", "words"),
    [
        ("Qwen/Qwen3-32B", {"kvCacheDtype": "fp8_ds_mla"}, ("keys and values", "NVIDIA", "nvfp4")),
        ("Qwen/Qwen3-32B", {"kvCacheDtype": "fp8_inc"}, ("fp8_inc", "NVIDIA")),
        ("Qwen/Qwen3-32B", {"kvCacheDtype": "ultraquant_4bit"}, ("ultraquant_4bit", "NVIDIA")),
        ("Qwen/Qwen3-32B", {"kvCacheDtype": "int8_per_token_head", "device": "cpu"}, ("a CPU", "fp8_e5m2")),
        (
            "Qwen/Qwen3-32B",
            {"kvCacheDtype": "nvfp4", "resources": {"limits": {"amd.com/gpu": "1"}}},
            ("nvfp4", "AMD"),
        ),
        ("deepseek-ai/DeepSeek-V3", {"kvCacheDtype": "nvfp4"}, ("a latent (MLA)", "fp8_e4m3")),
        ("deepseek-ai/DeepSeek-V3", {"kvCacheDtype": "fp8_e5m2"}, ("a latent (MLA)",)),
        ("deepseek-ai/DeepSeek-V3.2", {"kvCacheDtype": "turboquant_k8v4"}, ("an indexer", "fp8_ds_mla")),
        ("deepseek-ai/DeepSeek-V3.2", {"device": "cpu"}, ("nowhere on a CPU",)),
        ("openai/gpt-oss-20b", {"kvCacheDtype": "turboquant_k8v4"}, ("no sliding window",)),
        ("microsoft/phi-4", {"kvCacheDtype": "nvfp4"}, ()),
    ],
)
def test_what_no_backend_keeps(model: str, engine: dict[str, Any], words: tuple[str, ...]) -> None:
    result = verdict(cache_dtype, resource(model, engine=engine))
    if words:
        says(result, REJECT, "CacheDtypeNotSupported", *words)
        assert result.field == "spec.engine.kvCacheDtype"
    else:
        says(result, PASS, "Passed")


def test_heads_that_nvfp4_has_no_kernel_for() -> None:
    geometry = {"layers": 32, "kvHeads": 8, "headDim": 96}
    one = resource(geometry=geometry, engine={"kvCacheDtype": "nvfp4"})
    says(verdict(cache_dtype, one), REJECT, "CacheDtypeNotSupported", "64, 128, 256, 512", "has 96")


@pytest.mark.parametrize(
    ("model", "dtype", "words"),
    [
        ("Qwen/Qwen3-32B", "nvfp4_4over6", "keep nvfp4_4over6: on others"),
        ("openai/gpt-oss-120b", "nvfp4", "keep nvfp4 of heads of 64: on others"),
        ("meta-llama/Llama-3.2-1B", "nvfp4", "keep nvfp4 of heads of 64: on others"),
    ],
)
def test_what_only_some_gpus_keep(model: str, dtype: str, words: str) -> None:
    one = resource(model, engine={"kvCacheDtype": dtype})
    says(verdict(cache_dtype, one), WARN, "CacheDtypeNeedsGPU", "capability 10", words)


@pytest.mark.parametrize(
    ("fields", "sinks"),
    [
        ({"model_type": "gpt_oss"}, True),
        ({"model_type": "granite", "layer_types": ["full_attention"] * 12}, True),
        ({"model_type": "granite", "layer_types": ["full_attention"] * 12, "attention_sinks": False}, False),
        ({"model_type": "mimo_v2", "add_swa_attention_sink_bias": True}, True),
        ({"model_type": "qwen3"}, False),
    ],
    ids=str,
)
def test_sinks_in_nvfp4_need_one_gpu(fields: dict[str, Any], sinks: bool) -> None:
    model = Observed(model_config=LLAMA | {"head_dim": 128, "layer_types": ["full_attention"] * 12} | fields)
    result = verdict(cache_dtype, resource(engine={"kvCacheDtype": "nvfp4"}), model)
    assert result.outcome is (WARN if sinks else PASS), result.message
    assert ("beside attention sinks" in result.message) is sinks


def test_e5m2_on_an_fp8_checkpoint() -> None:
    quantization = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8"}}
    fp8 = Observed(model_config=LLAMA | {"quantization_config": quantization})
    e5m2 = {"kvCacheDtype": "fp8_e5m2"}
    says(verdict(cache_dtype, resource(engine=e5m2), fp8), REJECT, "CacheDtypeNotSupported", "fp8 checkpoint")
    says(verdict(cache_dtype, resource(engine=e5m2), Observed(model_config=LLAMA)), PASS, "Passed")


def test_a_dtype_that_the_checkpoint_asks_for() -> None:
    quantization = {
        "producer": {"name": "modelopt"},
        "quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "NVFP4"},
    }
    latent = LLAMA | {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "quantization_config": quantization}
    result = verdict(cache_dtype, resource(), Observed(model_config=latent))
    says(result, REJECT, "CacheDtypeNotSupported", "nvfp4", "a latent")
    assert result.field == "spec.model.name"


def test_a_packed_dtype_keeps_the_first_and_last_layers_as_they_are() -> None:
    given = check_input(
        resource(engine={"kvCacheDtype": "turboquant_4bit_nc"})
    )  # 64 layers of 8 heads of 128
    assert given.geometry.kv_bytes_per_token == 60 * 8 * (66 + 68) + 4 * 8 * 512


@pytest.mark.parametrize(
    ("image", "arguments", "outcome"),
    [
        ("vllm/vllm-openai:v0.33.0", [], REJECT),
        ("vllm/vllm-openai:v0.33.0", ["--dtype=half"], PASS),
        ("vllm/vllm-openai:v0.32.0", [], WARN),
        (None, [], WARN),
    ],
)
def test_the_newer_minor_keeps_the_models_own_16_bits(
    image: str | None, arguments: list[str], outcome: Outcome
) -> None:
    engine = {"kvCacheDtype": "float16", "extraArgs": arguments} | ({"image": image} if image else {})
    config = {"text_config": LLAMA, "dtype": "bfloat16"}
    result = verdict(cache_dtype, resource("a/b", engine=engine), Observed(model_config=config))
    assert result.outcome is outcome, result.message
    unknown = verdict(cache_dtype, resource("a/b", engine=engine), Observed(model_config=LLAMA))
    says(unknown, PASS, "Passed")
