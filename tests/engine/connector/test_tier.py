"""Real engines with the tier: the same tokens as without it, whatever is stored, loaded, evicted or fails."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.connector.prompts import answers, metric, prompt, tokens_of

from kvtier_connector.config import MIB, ConnectorConfig, Policy, kv_transfer_config

# What vLLM and PyTorch warn of is not ours.
pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

if TYPE_CHECKING:
    from vllm import LLM

# A chunk of 32 tokens has 32 KiB in the tiny model: the tier holds 128 of them, the device 48.
TIER = ConnectorConfig(cpu_capacity_bytes=4 * MIB, hugepages=Policy.OFF)
DEVICE = {"num_gpu_blocks_override": 48}
PROMPTS = [prompt(length) for length in (31, 32, 65, 200, 333, 640)]


@pytest.fixture(scope="module")
def cold_tokens(engine: Callable[..., Any]) -> list[list[int]]:
    with engine(**DEVICE, enable_prefix_caching=False) as llm:
        return tokens_of([answers(llm, [ids])[0] for ids in PROMPTS])


@pytest.fixture(scope="module")
def tier(engine: Callable[..., Any], cold_tokens: list[list[int]]) -> Iterator[Any]:
    # A second engine in one process takes the first one's metrics away: the cold one has to be gone.
    del cold_tokens
    with engine(kv_transfer_config(TIER), **DEVICE) as llm:
        yield llm


def test_a_warm_tier_gives_the_tokens_of_a_cold_engine(tier: "LLM", cold_tokens: list[list[int]]) -> None:
    first = [answers(tier, [ids])[0] for ids in PROMPTS]
    assert tokens_of(first) == cold_tokens
    assert tier.reset_prefix_cache()
    warm = [answers(tier, [ids])[0] for ids in PROMPTS]
    assert tokens_of(warm) == cold_tokens
    # Only whole chunks of 32 tokens are kept; of a prompt all there, its last token is computed again.
    assert [cached for _, cached in warm] == [0, 32, 64, 192, 320, 640]


def test_its_numbers_are_in_vllms_metrics(tier: "LLM") -> None:
    assert tier.reset_prefix_cache()
    answers(tier, [PROMPTS[4]])
    loaded = metric(tier, "vllm:kv_offload_load_bytes")
    assert tier.reset_prefix_cache()
    answers(tier, [PROMPTS[4]])
    assert metric(tier, "vllm:kv_offload_load_bytes") - loaded == 10 * 32 * 1024
    assert metric(tier, "vllm:kvtier_cpu_capacity_bytes") == 4 * MIB
    assert metric(tier, "vllm:kvtier_cpu_capacity_tokens") == 4096
    cached = metric(tier, "vllm:kvtier_cpu_cached_tokens")
    assert 320 <= cached <= 4096
    assert metric(tier, "vllm:kvtier_cpu_used_bytes") == cached * 1024
    assert metric(tier, "vllm:external_prefix_cache_hits") > 0


def test_more_prompts_than_either_cache_holds(tier: "LLM") -> None:
    order = random.Random(1)  # noqa: S311 - not for secrets
    pool = [prompt(order.randrange(100, 700), seed) for seed in range(14)]
    expected = {seed: answers(tier, [ids])[0][0] for seed, ids in enumerate(pool)}
    for _ in range(8):
        picked = order.sample(range(len(pool)), 4)
        found = answers(tier, [pool[seed] for seed in picked])
        assert tokens_of(found) == [expected[seed] for seed in picked]
    assert metric(tier, "vllm:kvtier_cpu_evicted_chunks") > 0
    assert metric(tier, "vllm:kvtier_cpu_failed_chunks") == 0


def test_a_failed_load_is_computed_once_and_healed(
    engine: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KVTIER_TEST_FAULTS", str(tmp_path))
    transfer = kv_transfer_config(TIER) | {
        "kv_connector_module_path": "tests.engine.connector.faulty_connector"
    }
    ids = PROMPTS[-1]
    with engine(transfer, **DEVICE) as llm:
        cold = answers(llm, [ids])[0][0]
        assert llm.reset_prefix_cache()
        (tmp_path / "fail").touch()
        assert answers(llm, [ids])[0] == (cold, 0)
        assert len((tmp_path / "attempts").read_text().split()) == 1
        assert metric(llm, "vllm:kvtier_cpu_failed_chunks") == 20

        (tmp_path / "fail").unlink()
        answers(llm, [prompt(40)])  # the engine lives, and has stored the chunks again
        assert llm.reset_prefix_cache()
        assert answers(llm, [ids])[0] == (cold, 640)


def test_a_model_with_sliding_windows(engine: Callable[..., Any], model_folder: Callable[..., Path]) -> None:
    model = model_folder(
        architectures=["Gemma3ForCausalLM"],
        model_type="gemma3_text",
        num_hidden_layers=4,
        layer_types=["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"],
        sliding_window=64,
        sliding_window_pattern=4,
        query_pre_attn_scalar=32,
        hidden_activation="gelu_pytorch_tanh",
        tie_word_embeddings=True,
    )
    with engine(kv_transfer_config(TIER), model=model) as llm:
        cold = [answers(llm, [ids])[0] for ids in PROMPTS]
        assert llm.reset_prefix_cache()
        warm = [answers(llm, [ids])[0] for ids in PROMPTS]
        assert tokens_of(warm) == tokens_of(cold)
        assert warm[-1][1] >= 576
