"""Check state-dtype: the states of linear attention in a dtype that vLLM takes."""

import json
from pathlib import Path

import pytest
from tests.cases.checks import PASS, REJECT, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.checks.cache_format import state_dtype
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.verdict import CheckResult

GATED, KDA = "Qwen--Qwen3.5-27B", "moonshotai--Kimi-K3"


def of(model: str, *arguments: str) -> CheckResult:
    config = Path(__file__).parents[5] / "cases/models" / model / "config.json"
    observed = Observed(model_config=json.loads(config.read_text(encoding="utf-8")))
    return verdict(state_dtype, resource("local/model", engine={"extraArgs": [*arguments]}), observed)


@pytest.mark.parametrize(
    ("model", "argument", "choices"),
    [
        (GATED, "--mamba-ssm-cache-dtype=int8", "auto, float32, float16 or bfloat16"),
        (GATED, "--mamba_cache_dtype=fp8", "auto, float32, float16 or bfloat16"),
        (KDA, "--mamba-ssm-cache-dtype=float16", "auto, float32 or bfloat16"),
    ],
)
def test_dtypes_that_vllm_does_not_take(model: str, argument: str, choices: str) -> None:
    says(of(model, argument), REJECT, "StateDtypeNotSupported", argument.partition("=")[2], choices)


@pytest.mark.parametrize(
    ("model", "arguments"),
    [
        (GATED, []),
        (GATED, ["--mamba-ssm-cache-dtype", "float16"]),
        (KDA, ["--mamba-ssm-cache-dtype", "bfloat16", "--mamba-cache-dtype", "float16"]),
    ],
)
def test_others_pass(model: str, arguments: list[str]) -> None:
    says(of(model, *arguments), PASS, "Passed")
