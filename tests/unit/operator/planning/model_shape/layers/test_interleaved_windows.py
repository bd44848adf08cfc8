"""Windows that a file gives layer by layer, and those that vLLM's class does not take."""

from collections import Counter
from typing import Any

import pytest

from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.model_shape.from_config import shape_from_config

BASE = {"num_hidden_layers": 12, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64}
QWEN = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "sliding_window": 4096}


def windows(config: dict[str, Any]) -> dict[int, int]:
    found: Counter[int] = Counter()
    for group in shape_from_config(BASE | config, "config.json").groups:
        found[group.window_tokens] += group.layers
    return found


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"interleaved_sliding_window": 512}, {512: 12}),
        ({"interleaved_sliding_window": [512, 512, None]}, {512: 8, 0: 4}),
        ({"interleaved_sliding_window": [None, 512], "layer_types": ["full_attention"] * 12}, {512: 6, 0: 6}),
        ({"model_type": "plamo3", "window_size": 2048, "sliding_window_pattern": 8}, {2048: 11, 0: 1}),
        # all layers or none
        (QWEN | {"use_sliding_window": True, "max_window_layers": 12}, {0: 12}),
        (QWEN | {"use_sliding_window": True, "max_window_layers": 0}, {4096: 12}),
        (QWEN | {"use_sliding_window": False, "max_window_layers": 9}, {0: 12}),
        (  # a draft of a class of its own
            QWEN
            | {"architectures": ["DFlashDraftModel"], "use_sliding_window": True, "max_window_layers": 9},
            {0: 9, 4096: 3},
        ),
    ],
)
def test_windows(config: dict[str, Any], expected: dict[int, int]) -> None:
    assert windows(config) == expected


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"interleaved_sliding_window": [512, 1024]}, "interleaved_sliding_window"),
        ({"interleaved_sliding_window": [512, "1024"]}, "interleaved_sliding_window"),
        (QWEN | {"use_sliding_window": True, "max_window_layers": 9}, "max_window_layers"),
    ],
)
def test_refused(config: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInputError, match=f"config.json: {field}: "):
        windows(config)
