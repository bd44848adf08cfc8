"""Models of which images decide the attention backend, and with it the block on some GPUs."""

from typing import Any

import pytest
from tests.cases.planning import resource

from kvtier_operator.planning.kv_cache.cost import resolve_geometry
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.observed import Observed

TEXT: dict[str, Any] = {
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "hidden_size": 1024,
}


def geometry(root: dict[str, Any], *arguments: str, **text: object) -> Geometry:
    config = root | {"text_config": TEXT | text}
    one = resource("a/b", engine={"extraArgs": [*arguments]})
    return resolve_geometry(one.spec, Observed(model_config=config))


@pytest.mark.parametrize(
    ("root", "text", "blocks"),
    [
        ({"model_type": "gemma3"}, {}, (16, 64)),
        ({"model_type": "gemma3"}, {"head_dim": 128}, ()),  # FLASH_ATTN takes them, on Blackwell, too
        ({"model_type": "any"}, {}, ()),
        ({"model_type": "any", "is_mm_prefix_lm": True}, {}, (16, 64)),
        ({"model_type": "gemma3", "is_mm_prefix_lm": False}, {}, ()),
        ({"model_type": "gemma4"}, {"use_bidirectional_attention": "vision"}, (16, 64)),
        ({"model_type": "gemma4"}, {}, ()),
    ],
    ids=str,
)
def test_the_block(root: dict[str, Any], text: dict[str, object], blocks: tuple[int, ...]) -> None:
    found = geometry(root, **text)
    assert (found.block_tokens, found.block_tokens_by_gpu) == (16, blocks)
    assert ("64 on Blackwell (B200)" in " ".join(found.notes)) is bool(blocks)


def test_an_engine_of_text_alone() -> None:
    assert geometry({"model_type": "gemma3"}, "--language-model-only").block_tokens_by_gpu == ()


def test_a_backend_of_heads_is_one_for_them() -> None:
    named = geometry({"model_type": "gemma3"}, "--attention-backend", "TRITON_FLASHINFER")
    assert (named.block_tokens, named.block_tokens_by_gpu) == (64, ())
