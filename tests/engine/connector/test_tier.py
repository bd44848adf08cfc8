"""Real engines with the tier: the same tokens as without it, whatever is stored, loaded, evicted or fails."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.connector.prompts import SMALL_DEVICE, answers, metric, overwrite, prompt, tokens_of

from kvtier_connector.config import MIB, ConnectorConfig, Policy, kv_transfer_config

# What vLLM and PyTorch warn of is not ours.
pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

if TYPE_CHECKING:
    from vllm import LLM

# A chunk of 32 tokens has 32 KiB in the tiny model: the tier holds 128 of them, the device 48.
TIER = ConnectorConfig(cpu_capacity_bytes=4 * MIB, hugepages=Policy.OFF)
PROMPTS = [prompt(length) for length in (31, 32, 65, 200, 333, 640)]
KNOWN = prompt(480)
# The first keeps the engine busy until all are there; the others share a prefix that the tier knows.
TOGETHER = [
    prompt(760),
    KNOWN + prompt(90, 1),
    KNOWN[:320] + prompt(13, 2),
    KNOWN + prompt(40, 3),
]


@pytest.fixture(scope="module")
def cold_tokens(engine: Callable[..., Any]) -> list[list[int]]:
    """What an engine without a tier or a prefix cache answers to PROMPTS and TOGETHER."""
    with engine(**SMALL_DEVICE, enable_prefix_caching=False) as llm:
        other = prompt(32, 1) + PROMPTS[-1][32:]
        assert answers(llm, [other])[0][0] != answers(llm, [PROMPTS[-1]])[0][0], "the prefix does not matter"
        return tokens_of([answers(llm, [ids])[0] for ids in PROMPTS + TOGETHER])


@pytest.fixture(scope="module", params=["in step", "apart"])
def tier(
    request: pytest.FixtureRequest, engine: Callable[..., Any], cold_tokens: list[list[int]]
) -> Iterator[Any]:
    # A second engine in one process takes the first one's metrics away: the cold one has to be gone.
    del cold_tokens
    transfer = kv_transfer_config(TIER)
    if request.param == "apart":
        transfer |= {"kv_connector_module_path": "tests.engine.connector.apart_connector"}
    with engine(transfer, **SMALL_DEVICE) as llm:
        yield llm


def test_a_warm_tier_gives_the_tokens_of_a_cold_engine(tier: "LLM", cold_tokens: list[list[int]]) -> None:
    first = [answers(tier, [ids])[0] for ids in PROMPTS]
    assert tokens_of(first) == cold_tokens[: len(PROMPTS)]
    overwrite(tier)
    warm = [answers(tier, [ids])[0] for ids in PROMPTS]
    assert tokens_of(warm) == cold_tokens[: len(PROMPTS)]
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


# A prompt is computed in several steps, each with room for others.
def test_what_requests_generate_side_by_side_is_kept_if_asked_for(engine: Callable[..., Any]) -> None:
    with engine(kv_transfer_config(replace(TIER, offload_prompt_only=False)), **SMALL_DEVICE) as llm:
        asked = [prompt(length, seed=7) for length in (40, 75, 101)]
        generated = tokens_of(answers(llm, asked, tokens=108))
        told = [ids + more[:100] for ids, more in zip(asked, generated, strict=True)]
        overwrite(llm)
        warm = [answers(llm, [ids])[0] for ids in told]
        assert tokens_of(warm) == [more[100:] for more in generated]
        assert [cached for _, cached in warm] == [128, 160, 192]


SMALL_STEPS = {"max_num_batched_tokens": 512, "long_prefill_token_threshold": 128}


@pytest.fixture
def faulty(engine: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("KVTIER_TEST_FAULTS", str(tmp_path))
    faults = {"kv_connector_module_path": "tests.engine.connector.faulty_connector"}
    with engine(kv_transfer_config(TIER) | faults, **SMALL_DEVICE, **SMALL_STEPS) as llm:
        yield llm


def test_a_failed_load_is_computed_once_and_healed(faulty: "LLM", tmp_path: Path) -> None:
    ids = PROMPTS[-1]
    cold = answers(faulty, [ids])[0][0]
    overwrite(faulty)
    (tmp_path / "fail").touch()
    assert answers(faulty, [ids])[0] == (cold, 0)
    assert (tmp_path / "loads").read_text().splitlines() == ["apart"]
    assert metric(faulty, "vllm:kvtier_cpu_failed_chunks") == 20

    (tmp_path / "fail").unlink()
    answers(faulty, [prompt(40)])  # the engine lives, and has stored the chunks again
    overwrite(faulty)
    assert answers(faulty, [ids])[0] == (cold, 640)


def test_a_load_that_fails_in_its_step_leaves_nothing_wrong_behind(
    cold_tokens: list[list[int]], faulty: "LLM", tmp_path: Path
) -> None:
    cold = cold_tokens[len(PROMPTS) :]
    answers(faulty, [KNOWN])
    overwrite(faulty)
    (tmp_path / "fail").touch()
    assert tokens_of(answers(faulty, TOGETHER)) == cold
    assert set((tmp_path / "loads").read_text().splitlines()) == {"in step"}

    (tmp_path / "fail").unlink()
    assert tokens_of(answers(faulty, TOGETHER)) == cold  # from the device, where it is
    overwrite(faulty)
    again = [answers(faulty, [ids])[0] for ids in TOGETHER]
    assert tokens_of(again) == cold
    assert again[1][1] == 544


def test_a_model_with_sliding_windows(
    engine: Callable[..., Any], model_folder: Callable[..., Path], tmp_path: Path
) -> None:
    model = model_folder(
        model_type="gemma3_text",
        num_hidden_layers=4,
        layer_types=["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"],
        sliding_window=64,
        sliding_window_pattern=4,
        query_pre_attn_scalar=32,
        hidden_activation="gelu_pytorch_tanh",
        tie_word_embeddings=True,
    )
    on_disk = replace(TIER, disk_path=str(tmp_path / "disk"), disk_capacity_bytes=16 * MIB)
    with engine(kv_transfer_config(on_disk), model=model) as llm:
        cold = [answers(llm, [ids])[0] for ids in PROMPTS]
        assert llm.reset_prefix_cache()  # its device is so large that other blocks are handed out
        warm = [answers(llm, [ids])[0] for ids in PROMPTS]
        assert tokens_of(warm) == tokens_of(cold)
        assert warm[-1][1] >= 576
    with engine(kv_transfer_config(on_disk), model=model) as llm:
        from_disk = [answers(llm, [ids])[0] for ids in PROMPTS]
        assert tokens_of(from_disk) == tokens_of(cold)
        assert from_disk[-1][1] >= 576
        assert metric(llm, "vllm:kvtier_disk_hit_chunks") > 0
