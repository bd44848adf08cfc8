"""What the planner reads and counts of speculative decoding, against vLLM's own parser, rules and engine."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from tests.cases.planning import resource

from kvtier_connector.bench.vllm_arguments import serve_parser
from kvtier_connector.config import ConnectorConfig, kv_transfer_config
from kvtier_operator.api.spec.command_line import CommandLine
from kvtier_operator.planning.arguments.speculation import GONE_FROM_NEWER, Method, _config
from kvtier_operator.planning.kv_cache.cost import resolve_geometry
from kvtier_operator.planning.model_shape.config.fields import ConfigFields
from kvtier_operator.planning.model_shape.layers.mtp import _COUNTS, mtp_layers
from kvtier_operator.planning.observed import Observed

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]
EAGLE = '{"model": "a/B-3.1", "method": "eagle", "num_speculative_tokens": 3}'
ARCHITECTURES = {
    "mimo": "MiMoForCausalLM",
    "glm4_moe": "Glm4MoeForCausalLM",
    "mimo_v2": "MiMoV2ForCausalLM",
} | {
    "glm4_moe_lite": "Glm4MoeLiteForCausalLM",
    "glm_ocr": "GlmOcrForConditionalGeneration",
    "mimo_v2_flash": "MiMoV2FlashForCausalLM",
    "minimax_m3": "MiniMaxM3SparseForConditionalGeneration",
}
"""Of the models that vLLM knows by these (config/speculative.py, hf_config_override)."""
NOT_SIZED = {
    *("mtp", "qwen4_exp_mtp", "bailing_hybrid_v3_mtp", "gemma4_mtp", "inkling_mtp", "kimi_k3_mtp"),
    *("step5_mtp",),
}
"""Of models that kvtier cannot size, without layers of their own, or with a count that is nested."""


@pytest.mark.parametrize(
    "words",
    [
        ["--speculative-config", EAGLE],
        ["--speculative_config", EAGLE],
        [f"--speculative-conf={EAGLE}"],
        ["-sc", EAGLE],
        [f"-sc={EAGLE}"],
        ["-sc.model", "a/B-3.1", "--speculative-config.num_speculative_tokens=3", "-sc", EAGLE],
        ["--speculative-config.model=a/B-3.1", "--speculative-config.num_speculative_tokens", "3"],
        ["--speculative-config.model", "a/B-3.1", "--speculative-config", EAGLE],
        ["--speculative-config", EAGLE, "-sc", '{"method": "ngram"}'],
        ["--spec-method", "eagle", "--spec-model=a/B-3.1", "--spec-tokens", "3"],
        ["--spec-met", "eagle"],
        ["-sc", '{"model": "a/B-3.1"}', "--spec_tokens", "3"],
        ["-sc", "null"],
    ],
)
def test_arguments_are_read_as_vllm_reads_them(words: list[str]) -> None:
    found = serve_parser().parse_args(["model", *words])
    short = {
        "method": found.spec_method,
        "model": found.spec_model,
        "num_speculative_tokens": found.spec_tokens,
    }
    given = (found.speculative_config or {}) | {
        name: value for name, value in short.items() if value is not None
    }
    read, _ = _config(CommandLine(tuple(words)))
    assert {name: str(value) for name, value in read.items()} == {
        name: str(value) for name, value in given.items()
    }


def test_methods_are_vllms() -> None:
    from vllm.config.speculative import MTPModelTypes, SpeculativeMethod  # noqa: PLC0415 - takes seconds

    named: set[str] = set()
    waiting: list[Any] = list(get_args(SpeculativeMethod))
    while waiting:
        each = waiting.pop()
        waiting += get_args(each)
        named |= {each} if isinstance(each, str) else set()
    own = {str(method) for method in Method}
    assert named - own == set(get_args(MTPModelTypes)) - {"mtp"}
    assert own - named <= {str(method) for method in GONE_FROM_NEWER}


def _overridden(model_type: str, count: int) -> Any:  # noqa: ANN401 - vLLM publishes no types
    """vLLM's configuration of a model's predictor."""
    from transformers import PreTrainedConfig  # noqa: PLC0415 - takes seconds
    from vllm.config import SpeculativeConfig  # noqa: PLC0415 - as above

    config = PreTrainedConfig(
        num_hidden_layers=1, layer_types=["full_attention"], **{_COUNTS[model_type] or "none": count}
    )
    config.model_type, config.architectures = model_type, [ARCHITECTURES.get(model_type, "Some")]
    config.get_text_config = lambda: SimpleNamespace(num_nextn_predict_layers=count)
    return SpeculativeConfig.hf_config_override(config)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("model_type", sorted(_COUNTS.keys() - {"longcat_flash"}))
def test_predictors_are_as_many_as_vllm_finds(model_type: str, count: int) -> None:
    config = {"num_hidden_layers": 1, "model_type": model_type, _COUNTS[model_type]: count}
    assert mtp_layers(ConfigFields(config, "config.json")) == _overridden(model_type, count).n_predict


def test_no_predictor_of_vllms_is_forgotten() -> None:
    from vllm.config.speculative import MTPModelTypes  # noqa: PLC0415 - takes seconds

    known = {_overridden(model_type, 1).model_type for model_type in _COUNTS}
    assert known <= set(get_args(MTPModelTypes))
    assert set(get_args(MTPModelTypes)) - known <= NOT_SIZED


def test_an_engine_caches_a_drafts_layers(
    engine: Callable[..., AbstractContextManager[Any]], model_folder: Callable[..., Path]
) -> None:
    model, draft = model_folder(), model_folder(num_hidden_layers=1, num_key_value_heads=1)
    given = {"model": str(draft), "method": "draft_model", "num_speculative_tokens": 2}
    transfer = kv_transfer_config(ConnectorConfig(cpu_capacity_bytes=2**24))
    one = resource(
        str(model),
        cpu="16Mi",
        engine={"device": "cpu", "extraArgs": ["--dtype", "float32", "-sc", json.dumps(given)]},
    )
    observed = Observed(
        model_config=json.loads((model / "config.json").read_text()),
        draft_config=json.loads((draft / "config.json").read_text()),
    )
    geometry = resolve_geometry(one.spec, observed)
    with engine(transfer, model=model, speculative_config=given) as llm:
        cache = llm.llm_engine.engine_core.engine_core.scheduler.kv_cache_config
        layers = sum(len(group.layer_names) for group in cache.kv_cache_groups)
        block_bytes = cache.kv_cache_tensors[0].size // cache.num_blocks
    assert layers == 3
    assert geometry.kv_bytes_per_token == block_bytes // 32
