"""--hf-overrides changes the fields that it changes for vLLM."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cases.planning import resource

from kvtier_connector.bench.llm import serve_parser
from kvtier_operator.planning.model_shape.overrides import overridden
from kvtier_operator.planning.observed import Observed

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]
QWEN = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "hidden_size": 256,
    "max_position_embeddings": 4096,
}
NESTED = {
    "architectures": ["Gemma3ForConditionalGeneration"],
    "model_type": "gemma3",
    "text_config": QWEN | {"model_type": "gemma3_text", "sliding_window": 512},
    "vision_config": {"model_type": "siglip_vision_model", "num_hidden_layers": 2},
}
FIELDS = ("num_hidden_layers", "num_key_value_heads", "head_dim", "max_position_embeddings")


@pytest.mark.parametrize("config", [QWEN, NESTED], ids=["plain", "nested"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["--hf-overrides", '{"num_hidden_layers": 2, "head_dim": 32}'],
        ["--hf-overrides.num_key_value_heads", "1", "--hf-overrides.head_dim=16"],
        ["--hf-overrides", '{"text_config": {"num_hidden_layers": 2, "head_dim": 32}}'],
        ["--hf-overrides.text_config.num_key_value_heads=1"],
        ["--hf-overrides", '{"head_dim": 32}', "--hf-overrides", '{"num_hidden_layers": 3}'],
        ["--hf-overrides.head_dim=32", "--hf-overrides", '{"num_hidden_layers": 3}'],
        ["--hf-over", '{"max_position_embeddings": 8192}'],
    ],
    ids=str,
)
def test_overrides(config: dict[str, Any], arguments: list[str], tmp_path: Path) -> None:
    from vllm.config import ModelConfig  # noqa: PLC0415 - takes seconds
    from vllm.transformers_utils.config import get_config  # noqa: PLC0415

    (tmp_path / "config.json").write_text(json.dumps(config))
    overrides = serve_parser().parse_args(["model", *arguments]).hf_overrides
    flat = {name: value for name, value in overrides.items() if not isinstance(value, dict)}
    parts = {name: value for name, value in overrides.items() if isinstance(value, dict)}
    theirs = get_config(str(tmp_path), trust_remote_code=False, hf_overrides_kw=flat)
    ModelConfig._apply_dict_overrides(ModelConfig.__new__(ModelConfig), theirs, parts)
    given = resource("a/b", engine={"extraArgs": arguments}).spec
    ours = overridden(given, Observed(model_config=config)).model_config
    assert ours is not None
    text, their_text = ours.get("text_config", ours), theirs.get_text_config()
    if "text_config" not in config:
        text, their_text = ours, theirs
    assert {name: text[name] for name in FIELDS} == {name: getattr(their_text, name) for name in FIELDS}
