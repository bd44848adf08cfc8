"""What tensor parallelism, the cache's dtype and the backend do to the cost of a token."""

from typing import Any

import pytest
from tests.cases.planning import resource

from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.kv_cache.cost import resolve_geometry
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.observed import Observed


def geometry(model: str, ranks: int = 1, *, backend: str = "KVTier", **engine: object) -> Geometry:
    one = resource(model, backend=backend, engine={"tensorParallelSize": ranks, **engine})
    return resolve_geometry(one.spec, Observed())


@pytest.mark.parametrize(
    ("model", "ranks", "tier", "rank"),
    [
        ("Qwen/Qwen3-32B", 2, 262_144, 131_072),
        ("Qwen/Qwen3-32B", 8, 262_144, 32_768),
        # 8 heads on 16 ranks: each head twice, 2 x 64 x 1 x 128 x 2 B on each rank
        ("Qwen/Qwen3-32B", 16, 524_288, 32_768),
        # the latent is on every rank whole, and in the tier once
        ("deepseek-ai/DeepSeek-V3", 8, 70_272, 70_272),
        # 2 heads on 4 ranks: 2 x 12 x 1 x 256 x 2 B on each
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", 4, 49_152, 12_288),
    ],
)
def test_ranks(model: str, ranks: int, tier: int, rank: int) -> None:
    split = geometry(model, ranks)
    assert (split.kv_bytes_per_token, split.kv_bytes_per_token_per_rank) == (tier, rank)


@pytest.mark.parametrize("dtype", ["fp8", "fp8_e4m3", "fp8_e5m2"])
def test_fp8_is_one_byte(dtype: str) -> None:
    assert geometry("Qwen/Qwen3-32B", kvCacheDtype=dtype).kv_bytes_per_token == 131_072


def test_sparse_mla_packs_scales_and_rotary_key_in_fp8() -> None:
    # 61 x (656 packed latent + 132 indexer)
    assert geometry("deepseek-ai/DeepSeek-V3.2", 8, kvCacheDtype="fp8").kv_bytes_per_token == 48_068


def test_dense_mla_in_fp8_is_half() -> None:
    assert geometry("deepseek-ai/DeepSeek-V3", kvCacheDtype="fp8").kv_bytes_per_token == 61 * 576


@pytest.mark.parametrize("argument", [["--dtype", "float32"], ["--dtype=float32"]])
def test_an_engine_in_float32_has_a_cache_in_float32(argument: list[str]) -> None:
    assert geometry("Qwen/Qwen3-32B", extraArgs=argument).kv_bytes_per_token == 524_288


def test_lmcache_in_the_engine_keeps_windows_in_full() -> None:
    full = geometry("openai/gpt-oss-120b", backend="LMCache")
    assert full.kv_bytes_per_token == 2 * 36_864
    assert full.bytes_per_prefix == 0
    assert "sliding-window layers keep every token" in full.notes[0]


@pytest.mark.parametrize("backend", ["KVTier", "Native", "LMCacheMP"])
def test_other_backends_keep_the_window_only(backend: str) -> None:
    assert geometry("openai/gpt-oss-120b", backend=backend).kv_bytes_per_token == 36_864


def test_the_hybrid_cache_manager_can_be_turned_off_by_hand() -> None:
    off = geometry("openai/gpt-oss-120b", extraArgs=["--disable-hybrid-kv-cache-manager"])
    assert off.kv_bytes_per_token == 2 * 36_864


@pytest.mark.parametrize(
    ("ranks", "minor", "block"), [(1, 32, 544), (1, 33, 576), (2, 33, 576), (4, 33, 320)]
)
def test_a_block_grows_until_it_holds_a_state(ranks: int, minor: int, block: int) -> None:
    # state: conv 8192 x 3 x 2 B + 32 x 128 x 128 x 2 B = 1,097,728 B; page: 2048 B a token at one rank;
    # 1,097,728 / 2048 = 536 -> 544, and 576 of the 64 tokens that vLLM 0.33 exports states at. Two ranks
    # halve both; on four the 2 KV heads are replicated, so a page stays at 1024 B a token:
    # 274,432 / 1024 = 268 -> 320
    image = f"vllm/vllm-openai:v0.{minor}.0"
    assert geometry("Qwen/Qwen3-Next-80B-A3B-Instruct", ranks, image=image).block_tokens == block


@pytest.mark.parametrize(("given", "block"), [(None, 32), (16, 32), (32, 32), (64, 64)])
@pytest.mark.parametrize("dtype", ["turboquant_k8v4", "turboquant_3bit_nc"])
def test_a_block_covers_layers_that_are_not_packed(dtype: str, given: int | None, block: int) -> None:
    found = geometry("meta-llama/Llama-3.1-8B", kvCacheDtype=dtype, blockSize=given)
    assert found.block_tokens == block


def test_how_fills_in_the_numbers() -> None:
    assert geometry("Qwen/Qwen3-32B").how == "2 x 64 layers x 8 heads x 128 x 2 B"
    assert "8 replicated over 16 ranks" in geometry("Qwen/Qwen3-32B", 16).how


def test_groups_are_padded_to_one_size() -> None:
    # 12 full and 13 sliding layers: below 1.5 times as many, so both become groups of 13 slots
    config = {
        "num_hidden_layers": 25,
        "num_attention_heads": 8,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "sliding_window": 128,
        "layer_types": ["sliding_attention", "full_attention"] * 12 + ["sliding_attention"],
    }
    padded = resolve_geometry(resource("local/model").spec, Observed(model_config=config))
    assert padded.kv_bytes_per_token == 2 * 13 * 8 * 64 * 2
    assert "of 12, padded" in padded.how


def test_a_model_without_attention_has_nothing_to_cache() -> None:
    config = {
        "model_type": "mamba",
        "num_hidden_layers": 4,
        "hidden_size": 64,
        "state_size": 16,
        "conv_kernel": 4,
    }
    with pytest.raises(InvalidInputError, match=r"one state of a whole sequence \(19 KiB a sequence\)"):
        resolve_geometry(resource("local/mamba").spec, Observed(model_config=config))


@pytest.mark.parametrize(
    ("model", "engine", "block"),
    [
        ("Qwen/Qwen3-32B", {}, 16),
        ("deepseek-ai/DeepSeek-V3", {}, 16),
        ("deepseek-ai/DeepSeek-V3", {"kvCacheDtype": "fp8"}, 64),
        ("deepseek-ai/DeepSeek-V3", {"blockSize": 32}, 32),
        ("deepseek-ai/DeepSeek-V3.2", {}, 64),
        ("deepseek-ai/DeepSeek-V3", {"extraArgs": ["--attention-backend", "FLASHMLA"]}, 64),
    ],
)
def test_the_block_that_vllm_chooses(model: str, engine: dict[str, Any], block: int) -> None:
    assert geometry(model, **engine).block_tokens == block


def test_a_block_that_the_gpu_decides_is_told_as_a_range() -> None:
    notes = " ".join(geometry("deepseek-ai/DeepSeek-V3").notes)
    assert "16 on Ampere" in notes
    assert "32 on Blackwell (B200)" in notes
    assert "blockSize 32 suits all" in notes
    certain = geometry("deepseek-ai/DeepSeek-V3", extraArgs=["--attention-backend=FLASHMLA"])
    assert "the GPU decides" not in " ".join(certain.notes)
    assert "the GPU decides" not in " ".join(geometry("deepseek-ai/DeepSeek-V3", blockSize=64).notes)
