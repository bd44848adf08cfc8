"""Classes of models that vLLM serves no more, or does not know."""

from typing import Any

import pytest
from tests.cases.checks import PASS, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.checks.model import architecture_known
from kvtier_operator.planning.kv_cache.cost import resolve_geometry
from kvtier_operator.planning.model_shape.from_config import shape_from_config
from kvtier_operator.planning.observed import Observed

BASE = {"num_hidden_layers": 12, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64}
STATES = {"layer_types": ["linear_attention", "full_attention"] * 6}


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"architectures": ["OuroForCausalLM"]}, "vLLM served OuroForCausalLM until 0.26.0 and does no more"),
        ({"architectures": ["MPTForCausalLM"]}, "until 0.28.0"),
        ({"architectures": ["One", "QWenLMHeadModel"]}, "vLLM served QWenLMHeadModel until 0.23.0"),
        ({"architectures": ["Nemotron3_5AsrForRNNT"]}, None),  # the Transformers library has it
        ({"architectures": ["BambaForCausalLM"], **STATES}, "layers that keep a state"),
        ({"architectures": ["MiniMaxForCausalLM"], **STATES}, "layers that keep a state"),
        ({"architectures": ["Qwen3NextForCausalLM"], **STATES}, None),
        ({"architectures": ["OuroForCausalLM", "LlamaForCausalLM"]}, None),  # vLLM takes the one that it has
    ],
)
def test_removed(config: dict[str, Any], said: str | None) -> None:
    if said is None:
        assert shape_from_config(BASE | config, "config.json").groups
        return
    with pytest.raises(InvalidInputError) as refused:
        shape_from_config(BASE | config, "config.json")
    [line] = str(refused.value).splitlines()
    assert line.startswith("config.json: architectures: ")
    assert said in line
    assert "spec.model.geometry" in line


@pytest.mark.parametrize(
    ("architectures", "known"),
    [
        (["FooForCausalLM"], False),
        (["YoutuForCausalLM"], False),
        (["Dots1ForCausalLM"], False),
        (["FooForCausalLM", "LlamaForCausalLM"], True),
        (["LlamaForSequenceClassification"], True),  # which vLLM makes of LlamaForCausalLM
        (["SeedOssForCausalLM"], True),
        ([], True),
    ],
)
def test_known(architectures: list[str], known: bool) -> None:
    result = verdict(
        architecture_known,
        resource("local/model"),
        Observed(model_config={**BASE, "architectures": architectures}),
    )
    if known:
        says(result, PASS, "Passed")
    else:
        says(result, WARN, "ArchitectureUnknown", architectures[0], "otherwise kvtier plans")


def test_overridden() -> None:
    overrides = ["--hf-overrides", '{"architectures": ["OuroForCausalLM"]}']
    one = resource(engine={"extraArgs": overrides})
    with pytest.raises(
        InvalidInputError, match=r"--hf-overrides: architectures: vLLM served OuroForCausalLM"
    ):
        resolve_geometry(one.spec, Observed())
