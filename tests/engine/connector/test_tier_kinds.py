"""Real engines with the tier that keep what they generate, or whose layers see only a window."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

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
pytestmark = [
    pytest.mark.engine,
    pytest.mark.usefixtures("disk_pays"),
    pytest.mark.filterwarnings("ignore"),
]


def test_what_requests_generate_side_by_side_is_kept_if_asked_for(engine: Callable[..., Any]) -> None:
    with engine(kv_transfer_config(replace(TIER, offload_prompt_only=False)), **SMALL_DEVICE) as llm:
        asked = [prompt(length, seed=7) for length in (40, 75, 101)]
        generated = tokens_of(answers(llm, asked, tokens=108))
        told = [ids + more[:100] for ids, more in zip(asked, generated, strict=True)]
        overwrite(llm)
        warm = [answers(llm, [ids])[0] for ids in told]
        assert tokens_of(warm) == [more[100:] for more in generated]
        assert [cached for _, cached in warm] == [128, 160, 192]


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
