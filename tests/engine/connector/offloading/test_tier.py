"""Real engines with the tier: the same tokens as without it, whatever is stored, loaded or evicted."""

import random
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.connector.memory_tier import TIER
from tests.engine.connector.prompts import (
    PROMPTS,
    SMALL_DEVICE,
    answers,
    metric,
    overwrite,
    prompt,
    tokens_of,
)

from kvtier_connector.config import MIB, kv_transfer_config

# What vLLM and PyTorch warn of is not ours.
pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

if TYPE_CHECKING:
    from vllm import LLM


@pytest.fixture(scope="module", params=["in step", "apart"])
def tier(
    request: pytest.FixtureRequest, engine: Callable[..., Any], cold_tokens: list[list[int]]
) -> Iterator[Any]:
    """One that loads as it is, and one that has no load short enough for a step."""
    # A second engine in one process takes the first one's metrics away: the cold one has to be gone.
    del cold_tokens
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "apart":
            patch.setattr("kvtier_connector.vllm.offloading.sync_loads.BYTES_PER_STEP", 0)
        with engine(kv_transfer_config(TIER), **SMALL_DEVICE) as llm:
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
