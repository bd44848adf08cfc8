"""Models of every kind against what vLLM itself makes of their published configurations."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cases.planning import resource

from kvtier_operator.planning.kv_cache.cost import resolve_geometry
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.observed import Observed

MODELS = Path(__file__).parents[4] / "cases/models"


def published(model: str, *, backend: str = "KVTier", **engine: object) -> Geometry:
    config = json.loads((MODELS / model / "config.json").read_text(encoding="utf-8"))
    one = resource("local/model", backend=backend, engine=engine)
    return resolve_geometry(one.spec, Observed(model_config=config))


@pytest.mark.parametrize(
    ("model", "token_bytes", "block_tokens", "prefix_bytes"),
    [
        ("LFM2-1.2B", 12_288, 16, 393_216),  # 10 convolutions make 2 groups of 6, each state a page
        ("LongCat-Flash-Chat", 64_512, 16, 0),
        ("MiniMaxAI--MiniMax-M2.7", 253_952, 16, 0),
        ("MiniMaxAI--MiniMax-M3", 137_472, 128, 0),
        ("zai-org--GLM-5.2", 92_628, 64, 0),
        ("moonshotai--Kimi-K3", 27_648, 5_760, 477_757_440),
        # 54 states in 6 groups of 10, each state a page of 4,128 x 4,096 B
        ("nvidia--Nemotron-H-56B-Base-8K", 40_960, 4_128, 60 * 4_128 * 4_096),
        ("nvidia--NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16", 12_288, 8_304, 408_158_208),
        ("Qwen--Qwen3.5-27B", 65_536, 784, 48 * 784 * 4_096),
        ("Qwen--Qwen3.5-35B-A3B", 20_480, 1_056, 30 * 1_056 * 2_048),
        ("openai--gpt-oss-120b", 36_864, 16, 4_718_592),
        # a block as wide as the 5 full layers has room for 2 windows: 13 groups of 64 blocks
        ("google--gemma-4-26B-A4B", 20_480, 16, 13 * 64 * 16 * 20_480),
        ("meta-llama--Llama-4-Scout-17B-16E-Instruct", 49_152, 16, 1_207_959_552),
    ],
)
def test_as_vllm_has_it(model: str, token_bytes: int, block_tokens: int, prefix_bytes: int) -> None:
    found = published(model)
    assert found.kv_bytes_per_token == found.kv_bytes_per_token_per_rank == token_bytes
    assert (found.block_tokens, found.bytes_per_prefix) == (block_tokens, prefix_bytes)


def test_a_layout_that_keeps_layers_apart_makes_pages_alike_instead() -> None:
    # vLLM's own connector asks for it: full pages of 4 KiB a token get the tokens of two, beside windows of 8
    found = published("google--gemma-4-26B-A4B", backend="Native")
    assert (found.kv_bytes_per_token, found.group_block_tokens) == (20_480, (32, 16))
    assert found.block_tokens == 16
    assert found.bytes_per_prefix == 5 * 64 * 16 * 5 * 8_192


@pytest.mark.parametrize(
    ("model", "ranks", "rank_bytes", "block_tokens", "once"),
    [
        ("moonshotai--Kimi-K3", 8, 27_648, 768, False),  # a state differs from rank to rank
        ("zai-org--GLM-5.2", 8, 92_628, 64, True),
        # the index keys are on every rank in full: 2 x 60 x 1 head x 128 x 2 + 57 x 256
        ("MiniMaxAI--MiniMax-M3", 4, 45_312, 128, False),
        # 8 groups of channels on 16 ranks are 16: a state does not get smaller by half
        ("nvidia--Nemotron-H-56B-Base-8K", 16, 5_120, 2_080, False),
    ],
)
def test_on_several_ranks(model: str, ranks: int, rank_bytes: int, block_tokens: int, once: bool) -> None:
    found = published(model, tensorParallelSize=ranks)
    assert (found.kv_bytes_per_token_per_rank, found.block_tokens) == (rank_bytes, block_tokens)
    assert found.kv_bytes_per_token == rank_bytes * (1 if once else ranks)
    assert found.stored_once == once


@pytest.mark.parametrize(
    ("model", "dtype", "least", "planned", "most"),
    [
        # fp8 by itself on Blackwell: 78 x 576 + 21 x 132
        ("zai-org--GLM-5.2", "auto", 47_700, 92_628, 92_628),
        ("zai-org--GLM-5.2", "bfloat16", None, 92_628, None),
        # packed with its scales, or plain on Blackwell: 61 x (656 or 576, and 132)
        ("deepseek-ai--DeepSeek-V3.2", "fp8", 43_188, 48_068, 48_068),
        ("deepseek-ai--DeepSeek-V3.2", "auto", 48_068, 78_324, 78_324),  # packed on RTX Blackwell
        ("LongCat-Flash-Chat", "fp8", None, 32_256, None),
    ],
)
def test_what_the_gpu_decides_is_a_range(
    model: str, dtype: str, least: int | None, planned: int, most: int | None
) -> None:
    found = published(model, kvCacheDtype=dtype)
    assert found.kv_bytes_per_token == planned
    by_gpu = found.kv_bytes_per_token_by_gpu
    assert (by_gpu[0], by_gpu[-1]) == (least, most) if least else by_gpu == ()
    said = [note for note in found.notes if "how sparse MLA is kept" in note]
    assert bool(said) == bool(least)
    assert all(f"{least:,} on Blackwell (B200)" in note or f"{least:,} on RTX" in note for note in said)


@pytest.mark.parametrize(("gpu", "planned"), [("b200", 43_188), ("h200", 48_068), ("gb300", 43_188)])
def test_a_gpu_that_is_named_leaves_no_range(gpu: str, planned: int) -> None:
    found = published("deepseek-ai--DeepSeek-V3.2", kvCacheDtype="fp8", gpu=gpu)
    assert (found.kv_bytes_per_token, found.kv_bytes_per_token_by_gpu) == (planned, ())
    assert not any("decides" in note for note in found.notes)


@pytest.mark.parametrize(
    ("block", "backend", "token_bytes"),
    [
        (64, "KVTier", 48_068),
        # pages of 64 tokens x 656 B, and of 64 x 132 B, fit 1,385,472 B: 4.44 of them are 5
        (128, "KVTier", 5 * 1_385_472 // 128),
        (128, "Native", 48_068),  # layers lie one after another
    ],
)
def test_larger_blocks_of_packed_latents_are_whole_pages_apart(
    block: int, backend: str, token_bytes: int
) -> None:
    found = published("deepseek-ai--DeepSeek-V3.2", backend=backend, kvCacheDtype="fp8", blockSize=block)
    assert found.kv_bytes_per_token == token_bytes
    assert ("of padding" in found.how) == (token_bytes != 48_068)


def test_blocks_of_gated_delta_net_are_aligned_by_the_newer_minor() -> None:
    older, newer = ({"image": f"vllm/vllm-openai:v0.{minor}.0"} for minor in (32, 33))
    of_the_newer = published("Qwen--Qwen3.5-27B", **newer)
    assert (of_the_newer.block_tokens, of_the_newer.block_tokens_by_gpu) == (832, (784, 832))
    assert published("Qwen--Qwen3.5-27B", **older).block_tokens_by_gpu == ()
    found = published("Qwen--Qwen3.5-27B", image="r.example/fork:7")
    assert (found.block_tokens, found.block_tokens_by_gpu) == (784, (784, 832))
    assert any("784 (vLLM 0.33: 832) on Hopper" in note for note in found.notes)
    assert published("Qwen--Qwen3.5-27B", device="cpu", **newer).block_tokens_by_gpu == ()
    assert published("Qwen--Qwen3.5-27B", gpu="l40s", **newer).block_tokens_by_gpu == ()
    known = published("Qwen--Qwen3.5-27B", gpu="h100", **newer)
    assert (known.block_tokens, known.block_tokens_by_gpu) == (832, ())
    named = published("Qwen--Qwen3.5-27B", gpu="h100", image="r.example/fork:7")
    assert named.block_tokens_by_gpu == (784, 832)
    assert any("vLLM's minor decides the tokens of a block" in note for note in named.notes)


EAGLE = ["--speculative-config", '{"method": "eagle", "model": "a/b", "num_speculative_tokens": 2}']
NGRAM = ["--speculative-config", '{"method": "ngram", "num_speculative_tokens": 2}']


@pytest.mark.parametrize(
    ("engine", "whole"),
    [
        ({}, False),
        ({"extraArgs": NGRAM}, False),
        ({"extraArgs": EAGLE}, True),
        ({"env": [{"name": "VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE", "value": "0"}]}, True),
    ],
)
def test_chunked_attention_with_a_draft_keeps_every_token(engine: dict[str, Any], whole: bool) -> None:
    found = published("meta-llama--Llama-4-Scout-17B-16E-Instruct", **engine)
    drafted = 4_096 if engine.get("extraArgs") == EAGLE else 0
    assert found.kv_bytes_per_token == (196_608 if whole else 49_152) + drafted
    assert any("for chunked attention here" in note for note in found.notes) == whole


@pytest.mark.parametrize(
    ("arguments", "block_tokens"),
    [
        ([], 4_128),
        (["--mamba-ssm-cache-dtype", "bfloat16"], 2_080),
        (["--mamba-ssm-cache-dtype=float32"], 4_128),
        (["--mamba-cache-dtype=float32"], 4_160),
        (["--mamba-cache-dtype=float32", "--mamba-ssm-cache-dtype=bfloat16"], 2_112),
        (["--speculative-config", '{"method": "ngram", "num_speculative_tokens": 8}'], 4_208),
    ],
)
def test_arguments_that_change_a_state(arguments: list[Any], block_tokens: int) -> None:
    found = published("nvidia--Nemotron-H-56B-Base-8K", extraArgs=arguments)
    assert found.block_tokens == block_tokens


@pytest.mark.parametrize(
    ("dtype", "bytes_per_token"),
    # 57 layers of 4 heads x 256 elements of a byte and 256 B of an index key; of the first three layers two
    # in the model's own dtype where the others are packed
    [
        ("fp8", 57 * 1280 + 3 * 1024),
        ("int8_per_token_head", 57 * 1280 + 3 * 4 * (256 + 8)),
        ("turboquant_k8v4", 57 * 1280 + 2 * 2048 + 4 * (128 + 64 + 4)),
    ],
)
def test_heads_that_attend_to_few_tokens_have_no_scales(dtype: str, bytes_per_token: int) -> None:
    found = published("MiniMaxAI--MiniMax-M3", kvCacheDtype=dtype)
    assert found.kv_bytes_per_token == bytes_per_token


def test_a_state_of_given_bytes_is_of_no_dtype() -> None:
    geometry = {"layers": 4, "kvHeads": 2, "headDim": 64, "linearLayers": 12, "stateBytesPerLayer": 1 << 20}
    arguments = ["--mamba-ssm-cache-dtype=float32", "--mamba-cache-dtype=float32"]
    told = resource(geometry=geometry, engine={"extraArgs": arguments})
    assert resolve_geometry(told.spec, Observed()) == resolve_geometry(
        resource(geometry=geometry).spec, Observed()
    )


def test_a_recurrent_state_is_in_the_convolutions_dtype_where_nothing_says_another() -> None:
    arguments = ["--mamba-cache-dtype=float32"]
    one = resource("Qwen/Qwen3-Next-80B-A3B-Instruct", engine={"extraArgs": arguments})
    both = resource(
        one.spec.model.name, engine={"extraArgs": [*arguments, "--mamba-ssm-cache-dtype=float32"]}
    )
    assert resolve_geometry(one.spec, Observed()) == resolve_geometry(both.spec, Observed())


@pytest.mark.parametrize(
    ("arguments", "block_tokens"),
    [
        ([], 1_088),
        (["--gdn-prefill-backend", "triton"], 1_056),
        (['--additional-config={"gdn_prefill_backend": "triton"}'], 1_056),
        (["--gdn-prefill-backend=flashinfer"], 1_088),
    ],
)
def test_blocks_follow_the_kernels_of_gated_delta_net(arguments: list[str], block_tokens: int) -> None:
    image = "vllm/vllm-openai:v0.33.0"
    geometry = published("Qwen--Qwen3.5-35B-A3B", image=image, extraArgs=arguments)
    assert geometry.block_tokens == block_tokens


def test_a_block_has_room_for_the_state_of_a_class_whose_layers_keep_none() -> None:
    path = MODELS / "nvidia--Nemotron-H-56B-Base-8K/config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config |= {"hybrid_override_pattern": "*-" * 4, "num_hidden_layers": 8}
    geometry = resolve_geometry(resource("a/b").spec, Observed(model_config=config))
    assert geometry.block_tokens == 4_128  # as of the whole model
    assert geometry.bytes_per_prefix == 0
