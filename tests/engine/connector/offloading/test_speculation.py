"""A tier under an engine that drafts tokens: the draft's keys and values come back with the model's."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engine.connector.prompts import (
    CACHED,
    PROMPTS,
    SMALL_DEVICE,
    answers,
    metric,
    overwrite,
    tokens_of,
)

from kvtier_connector.config import MIB, ConnectorConfig, Policy, kv_transfer_config
from kvtier_connector.supported import minor_of

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]
TIER = ConnectorConfig(cpu_capacity_bytes=16 * MIB, hugepages=Policy.NEVER)
BLOCK_TOKENS = 32
LAYER_BYTES = 512
"""Of one token in one layer of the tests' model, and of the drafts: 2 x 2 heads x 32 x 4 B."""


DRAFTS = {"draft_model": (1, 0), "eagle": (2, BLOCK_TOKENS)}
"""Layers by method, and the tokens by which a hit is shorter from vLLM 0.33 on: a head needs its last block's
hidden states."""


@pytest.mark.parametrize("method", DRAFTS)
def test_a_warm_tier_gives_the_tokens_of_a_cold_engine(
    method: str, engine: Callable[..., Any], model_folder: Callable[..., Path], cold_tokens: list[list[int]]
) -> None:
    from vllm import __version__  # noqa: PLC0415 - takes seconds
    from vllm.config import LoadConfig  # noqa: PLC0415 - as above

    draft_layers, dropped = DRAFTS[method]
    if minor_of(__version__) == "0.32":
        dropped = 0
    given: dict[str, object] = {"model": str(model_folder(num_hidden_layers=draft_layers)), "method": method}
    given |= {"num_speculative_tokens": 2, "draft_load_config": LoadConfig(load_format="dummy")}
    with engine(kv_transfer_config(TIER), speculative_config=given, **SMALL_DEVICE) as llm:
        first = [answers(llm, [ids])[0] for ids in PROMPTS]
        overwrite(llm)
        warm = [answers(llm, [ids])[0] for ids in PROMPTS]
        capacity_tokens = metric(llm, "vllm:kvtier_cpu_capacity_tokens")
    assert tokens_of(first) == tokens_of(warm) == cold_tokens[: len(PROMPTS)]
    assert [cached for _, cached in warm] == [max(tokens - dropped, 0) for tokens in CACHED]
    chunk_bytes = BLOCK_TOKENS * LAYER_BYTES * (2 + draft_layers)
    assert capacity_tokens == 16 * MIB // chunk_bytes * BLOCK_TOKENS
