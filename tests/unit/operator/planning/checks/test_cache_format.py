"""Checks of the cache's element types and layout."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import check_input, resource

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.checks.cache_format import (
    attention_backend,
    cache_dtype,
    cache_layout,
    state_dtype,
)
from kvtier_operator.planning.kv_cache.cost import resolve_geometry
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.verdict import CheckResult, Outcome

HEADS, LATENT, SPARSE = "Qwen/Qwen3-32B", "deepseek-ai/DeepSeek-V3", "deepseek-ai/DeepSeek-V3.2"


def one(model: str, *arguments: str) -> KVCacheTier:
    return resource(model, engine={"extraArgs": [*arguments]})


@pytest.mark.parametrize("model", [HEADS, LATENT, SPARSE])
def test_vllm_chooses(model: str) -> None:
    says(verdict(attention_backend, one(model)), PASS, "Passed")


@pytest.mark.parametrize(
    ("model", "backend"),
    [(HEADS, "FLASHINFER"), (LATENT, "flashmla"), (SPARSE, "FLASHMLA_SPARSE")],
)
def test_one_for_the_model(model: str, backend: str) -> None:
    says(
        verdict(attention_backend, one(model, "--attention-backend", backend)),
        PASS,
        "Passed",
        backend.upper(),
    )


@pytest.mark.parametrize(
    ("model", "backend", "other"),
    [
        (HEADS, "FLASHMLA", "FLASH_ATTN, FLASHINFER"),
        (LATENT, "FLASH_ATTN", "TRITON_MLA"),
        (LATENT, "FLASHMLA_SPARSE", "FLASHMLA"),
        (SPARSE, "FLASH_ATTN_MLA", "FLASHMLA_SPARSE"),
    ],
)
def test_one_for_another_kind_of_attention(model: str, backend: str, other: str) -> None:
    result = verdict(attention_backend, one(model, f"--attention-backend={backend}"))
    says(result, REJECT, "BackendNotSupported", backend, other)


def test_one_that_is_not_known() -> None:
    result = verdict(attention_backend, one(HEADS, "--attention-backend", "ROCM_AITER_UNIFIED_ATTN"))
    says(result, WARN, "BackendNotKnown", "ROCM_AITER_UNIFIED_ATTN", "16 tokens")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--attention-backend", "FLASHMLA"],
        ["--attention-config", '{"backend": "FLASHMLA"}'],
        ["--attention-config.backend=FLASHMLA"],
        ["-ac.backend", "FLASHMLA"],
    ],
)
def test_every_way_to_name_one_decides_the_block(arguments: list[str]) -> None:
    assert resolve_geometry(one(LATENT, *arguments).spec, Observed()).block_tokens == 64


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


@pytest.mark.parametrize(
    "fields",
    [
        {"model_type": "falcon_h1", "mamba_n_heads": 24, "mamba_d_head": 64, "mamba_d_state": 128},
        {"model_type": "paligemma", "head_dim": 128},
    ],
    ids=str,
)
def test_turboquant_needs_layers_of_attention_alone_that_see_what_came_before(fields: dict[str, Any]) -> None:
    model = Observed(model_config=LLAMA | {"head_dim": 128} | fields)
    result = verdict(cache_dtype, resource(engine={"kvCacheDtype": "turboquant_4bit_nc"}), model)
    says(result, REJECT, "CacheDtypeNotSupported", "turboquant_4bit_nc")


@pytest.mark.parametrize(("dtype", "outcome"), [("fp8", WARN), ("auto", PASS)])
def test_plain_drafts_beside_sparse_latents(dtype: str, outcome: object) -> None:
    draft = {"num_hidden_layers": 1, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64}
    config = '{"method": "eagle3", "model": "a/b", "num_speculative_tokens": 3}'
    engine = {"kvCacheDtype": dtype, "extraArgs": ["-sc", config]}
    one = resource("deepseek-ai/DeepSeek-V3.2", engine=engine)
    assert verdict(cache_dtype, one, Observed(draft_config=draft)).outcome is outcome


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
    named = resource(model, engine={"kvCacheDtype": dtype, "gpu": "h200"})
    says(verdict(cache_dtype, named), REJECT, "CacheDtypeNotSupported", "gpu is h200")
    able = resource(model, engine={"kvCacheDtype": dtype, "gpu": "gb200"})
    says(verdict(cache_dtype, able), PASS, "Passed")


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
        ("r.example/fork:7", [], WARN),
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


GATED, KDA = "Qwen--Qwen3.5-27B", "moonshotai--Kimi-K3"


def states_of(model: str, *arguments: str) -> CheckResult:
    config = Path(__file__).parents[4] / "cases/models" / model / "config.json"
    observed = Observed(model_config=json.loads(config.read_text(encoding="utf-8")))
    return verdict(state_dtype, resource("local/model", engine={"extraArgs": [*arguments]}), observed)


@pytest.mark.parametrize(
    ("model", "argument", "choices"),
    [
        (GATED, "--mamba-ssm-cache-dtype=int8", "auto, float32, float16 or bfloat16"),
        (GATED, "--mamba_cache_dtype=fp8", "auto, float32, float16 or bfloat16"),
        (KDA, "--mamba-ssm-cache-dtype=float16", "auto, float32 or bfloat16"),
    ],
)
def test_dtypes_that_vllm_does_not_take(model: str, argument: str, choices: str) -> None:
    says(states_of(model, argument), REJECT, "StateDtypeNotSupported", argument.partition("=")[2], choices)


@pytest.mark.parametrize(
    ("model", "arguments"),
    [
        (GATED, []),
        (GATED, ["--mamba-ssm-cache-dtype", "float16"]),
        (KDA, ["--mamba-ssm-cache-dtype", "bfloat16", "--mamba-cache-dtype", "float16"]),
    ],
)
def test_others_pass(model: str, arguments: list[str]) -> None:
    says(states_of(model, *arguments), PASS, "Passed")


ALIKE, UNLIKE, STATES = "Qwen/Qwen3-32B", "deepseek-ai/DeepSeek-V3.2", "Qwen/Qwen3-Next-80B-A3B-Instruct"
FROM = {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}


def layout_of(model: str, backend: str, variable: dict[str, Any] | str, **engine: object) -> CheckResult:
    given = {"value": variable} if isinstance(variable, str) else variable
    env = [{"name": "VLLM_KV_CACHE_LAYOUT", **given}]
    return verdict(cache_layout, resource(model, backend=backend, engine={"env": env, **engine}))


@pytest.mark.parametrize(
    ("model", "backend", "layout"),
    [
        *((ALIKE, "KVTier", layout) for layout in ("BLHNC", "BLNHC", "BHLNC")),
        (UNLIKE, "KVTier", "BLHNC"),
        (STATES, "KVTier", "BLHNC"),
        (ALIKE, "Native", "LBNHC"),
        (UNLIKE, "Native", "LBHNC"),
    ],
)
def test_as_planned(model: str, backend: str, layout: str) -> None:
    says(layout_of(model, backend, layout), PASS, "Passed")


@pytest.mark.parametrize(("model", "layout"), [(ALIKE, "HND"), (ALIKE, "LHBNC"), (STATES, "LBNHC")])
def test_copies_are_slower(model: str, layout: str) -> None:
    says(layout_of(model, "KVTier", layout), WARN, "LayoutCopiesSlowly", layout, "passes it on")


@pytest.mark.parametrize(
    ("model", "backend", "layout"),
    [
        (UNLIKE, "KVTier", "LBHNC"),
        (UNLIKE, "KVTier", FROM),
        (UNLIKE, "KVTier", "BHLNC"),
        (STATES, "KVTier", "LHBNC"),
        (UNLIKE, "Native", "BLHNC"),
    ],
)
def test_other_blocks_than_planned(model: str, backend: str, layout: str | dict[str, Any]) -> None:
    result = layout_of(model, backend, layout)
    says(result, REJECT, "LayoutNotPlanned", "remove it")
    assert result.field == "spec.engine.env[VLLM_KV_CACHE_LAYOUT]"


@pytest.mark.parametrize(("layout", "outcome"), [("LBHNC", PASS), ("BLHNC", REJECT)])
def test_a_cpu_has_one_layout(layout: str, outcome: object) -> None:
    assert layout_of(ALIKE, "KVTier", layout, device="cpu").outcome is outcome


def test_without_the_variable() -> None:
    says(verdict(cache_layout, resource()), PASS, "Passed")
