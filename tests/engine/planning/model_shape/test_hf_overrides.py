"""--hf-overrides changes the fields that it changes for vLLM."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.cases.planning import resource

from kvtier_connector.bench.vllm_arguments import serve_parser
from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.kv_cache.cost import resolve_geometry
from kvtier_operator.planning.model_shape.config.overrides import with_overrides
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

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024}


@pytest.mark.parametrize(
    ("fields", "overrides"),
    [
        ({}, {}),
        ({}, {"rope_parameters": YARN}),
        ({}, {"rope_parameters": YARN, "max_position_embeddings": 16_384}),
        ({"rope_scaling": {"rope_type": "linear", "factor": 2.0}}, {}),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, {}),
        ({"model_max_length": 8192}, {}),
    ],
    ids=str,
)
def test_the_longest_sequence_that_vllm_takes(
    fields: dict[str, Any], overrides: dict[str, Any], tmp_path: Path
) -> None:
    import vllm.config  # noqa: F401, PLC0415 - before its parts, which import each other
    from vllm.config.model import _get_and_verify_max_len  # noqa: PLC0415 - takes seconds
    from vllm.transformers_utils.config import get_config  # noqa: PLC0415
    from vllm.transformers_utils.model_arch_config_convertor import (  # noqa: PLC0415
        ModelArchConfigConvertorBase,
    )

    (tmp_path / "config.json").write_text(json.dumps(QWEN | fields))
    theirs = get_config(str(tmp_path), trust_remote_code=False, hf_overrides_kw=overrides)
    key = ModelArchConfigConvertorBase(theirs, theirs).derive_max_model_len_and_key()
    read = SimpleNamespace(derived_max_model_len_and_key=key)
    given = resource("a/b", engine={"extraArgs": ["--hf-overrides", json.dumps(overrides)]})
    most = resolve_geometry(given.spec, Observed(model_config=QWEN | fields)).shape.most_position_tokens
    assert most is not None
    assert _get_and_verify_max_len(theirs, read, None, most, False, None) == most  # noqa: FBT003 - theirs
    with pytest.raises(ValueError, match="greater than the derived"):
        _get_and_verify_max_len(theirs, read, None, most + 1, False, None)  # noqa: FBT003 - theirs


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
    if parts and "text_config" not in config:  # vLLM takes the mapping for a language model, and ends
        assert isinstance(theirs.text_config, dict)
        with pytest.raises(InvalidInputError, match="has no text_config"):
            with_overrides(given, Observed(model_config=config))
        return
    ours = with_overrides(given, Observed(model_config=config)).model_config
    assert ours is not None
    text, their_text = ours.get("text_config", ours), theirs.get_text_config()
    assert {name: text[name] for name in FIELDS} == {name: getattr(their_text, name) for name in FIELDS}
