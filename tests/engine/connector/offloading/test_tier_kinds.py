"""Real engines with the tier that keep what they generate, or whose layers see only a window."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.engine.connector.disk_engine import DiskEngine
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
from kvtier_connector.vllm.upstream.compat import log

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
        DiskEngine(llm).settle()
    with engine(kv_transfer_config(on_disk), model=model) as llm:
        from_disk = [answers(llm, [ids])[0] for ids in PROMPTS]
        assert tokens_of(from_disk) == tokens_of(cold)
        assert from_disk[-1][1] >= 576
        assert metric(llm, "vllm:kvtier_disk_hit_chunks") > 0


STATES = {
    "model_type": "lfm2",
    "num_hidden_layers": 4,
    "layer_types": ["conv", "full_attention", "conv", "full_attention"],
    "conv_L_cache": 3,
    "conv_dim": 64,
    "conv_dim_out": 64,
    "block_dim": 64,
    "block_ff_dim": 128,
    "block_multiple_of": 64,
    "block_ffn_dim_multiplier": 1.0,
    "block_auto_adjust_ff_dim": False,
}
"""A model whose convolutions keep a state."""
STATE_HITS = [0, 0, 64, 192, 320, 608]
"""Of `PROMPTS`, each up to the last end of a block that is before its last token."""


def test_a_model_that_keeps_states(
    engine: Callable[..., Any], model_folder: Callable[..., Path], tmp_path: Path
) -> None:
    model = model_folder(**STATES)
    on_disk = replace(TIER, disk_path=str(tmp_path / "disk"), disk_capacity_bytes=16 * MIB)
    with engine(kv_transfer_config(on_disk), model=model) as llm:
        cold = [answers(llm, [ids])[0] for ids in PROMPTS]
        assert llm.reset_prefix_cache()  # its device is so large that other blocks are handed out
        warm = [answers(llm, [ids])[0] for ids in PROMPTS]
        assert tokens_of(warm) == tokens_of(cold)
        assert [cached for _, cached in warm] == STATE_HITS
        DiskEngine(llm).settle()
    with engine(kv_transfer_config(on_disk), model=model) as llm:
        from_disk = [answers(llm, [ids])[0] for ids in PROMPTS]
        assert tokens_of(from_disk) == tokens_of(cold)
        assert [cached for _, cached in from_disk] == STATE_HITS


def test_states_in_chunks_of_several_blocks_are_warned_of(
    engine: Callable[..., Any],
    model_folder: Callable[..., Path],
    caplog: pytest.LogCaptureFixture,
    request: pytest.FixtureRequest,
) -> None:
    log.addHandler(caplog.handler)
    request.addfinalizer(lambda: log.removeHandler(caplog.handler))
    model = model_folder(**STATES)
    with engine(kv_transfer_config(replace(TIER, blocks_per_chunk=2)), model=model) as llm:
        cold = [answers(llm, [ids])[0] for ids in PROMPTS]
        assert llm.reset_prefix_cache()
        warm = [answers(llm, [ids])[0] for ids in PROMPTS]
    assert tokens_of(warm) == tokens_of(cold)
    assert [cached for _, cached in warm] == [hit if hit % 64 == 0 else 0 for hit in STATE_HITS]
    assert "blocks_per_chunk 2: this model keeps states" in caplog.text
