"""What is compared on a GPU, without one: the turns of its sides, and their settings."""

from dataclasses import replace
from pathlib import Path

import pytest

from kvtier_connector.bench.comparison import Comparison
from kvtier_connector.bench.measure import Run
from kvtier_connector.bench.vllm_arguments import ServeOptions
from kvtier_connector.config import ConnectorConfig, kv_transfer_config

TOKEN_BYTES = 147_456
"""Of a model of Qwen3-8B's sizes in bfloat16: 2 x 36 layers x 8 heads x 128 x 2 bytes."""


def test_every_other_turn_goes_backwards(model: Path) -> None:
    order = list(Comparison(model=model, turns=3).order())
    forwards, backwards = ["none", "vllm", "kvtier"], ["kvtier", "vllm", "none"]
    assert [side for _, side in order] == [*forwards, *backwards, *forwards]
    assert [turn for turn, _ in order] == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_a_gpu_s_engine_has_bfloat16_blocks_of_16_and_a_bounded_cache(model: Path) -> None:
    settings = Comparison(model=model).settings(device_tokens=1000, longest_tokens=500)
    assert settings == {
        "model": str(model),
        "dtype": "bfloat16",
        "block_size": 16,
        "enforce_eager": True,
        "load_format": "dummy",
        "worker_extension_cls": "kvtier_connector.bench.model.RandomWeights",
        "max_model_len": 500,
        "kv_cache_memory_bytes": (63 + 1) * 16 * TOKEN_BYTES,
    }


def test_what_is_given_is_the_engine_s_and_the_cache_is_bounded_all_the_same(model: Path) -> None:
    serve_options = ServeOptions(
        arguments=("--block-size", "32"), block_tokens=32, ranks=2, cache_dtype="fp8_e4m3"
    )
    settings = Comparison(model=model, drawn=False, serve_options=serve_options).settings(
        device_tokens=1000, longest_tokens=500
    )
    assert settings == {
        "model": str(model),
        "max_model_len": 500,
        "kv_cache_memory_bytes": (32 + 1) * 32 * TOKEN_BYTES // 2 // 2,
    }


@pytest.mark.parametrize(("dtype", "cache_dtype", "part"), [("float32", "auto", 2), ("float32", "fp8", 0.5)])
def test_a_token_is_as_large_as_its_elements(model: Path, dtype: str, cache_dtype: str, part: float) -> None:
    options = ServeOptions.read(["--dtype", dtype, "--kv-cache-dtype", cache_dtype])
    assert Comparison(model=model, serve_options=options).token_bytes() == part * TOKEN_BYTES


def test_more_ranks_than_heads_repeat_them(model: Path) -> None:
    assert Comparison(model=model, serve_options=ServeOptions(ranks=16)).token_bytes() == 2 * TOKEN_BYTES


def test_on_a_cpu_kvtier_is_beside_no_tier_in_larger_blocks(run: Run, model: Path) -> None:
    comparison = Comparison.of(replace(run, model=model, sides=("none", "vllm", "kvtier")))
    assert (comparison.sides, comparison.device, comparison.drawn) == (("none", "kvtier"), "cpu", False)
    settings = comparison.settings(device_tokens=1000, longest_tokens=500)
    assert (settings["block_size"], settings["dtype"]) == (32, "bfloat16")
    tier = comparison.side("kvtier", 1000, Path("/files"), Path("/sockets")).transfer
    assert tier is not None
    assert "blocks_per_chunk" not in tier["kv_connector_extra_config"], "a chunk is a block, the default"


@pytest.mark.parametrize(
    ("options", "asked_tokens", "tokens"),
    [
        (ServeOptions(), 15_400, 15_360 + 16),
        (ServeOptions(), 15_361, 15_361),
        (ServeOptions(), 64, 16),
        (ServeOptions(block_tokens=128), 15_400, 15_400),
        (ServeOptions(transfer=kv_transfer_config(ConnectorConfig(cpu_capacity_bytes=1))), 15_400, 15_400),
    ],
)
def test_of_a_prompt_both_caches_have_the_same_tokens(
    model: Path, options: ServeOptions, asked_tokens: int, tokens: int
) -> None:
    assert Comparison(model=model, serve_options=options).comparable_tokens(asked_tokens) == tokens
