"""Check cache-layout: VLLM_KV_CACHE_LAYOUT beside what the plan takes."""

from typing import Any

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.checks.cache_format import cache_layout
from kvtier_operator.planning.verdict import CheckResult

ALIKE, UNLIKE, STATES = "Qwen/Qwen3-32B", "deepseek-ai/DeepSeek-V3.2", "Qwen/Qwen3-Next-80B-A3B-Instruct"
FROM = {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}


def laid_out(model: str, backend: str, variable: dict[str, Any] | str, **engine: object) -> CheckResult:
    given = {"value": variable} if isinstance(variable, str) else variable
    env = [{"name": "VLLM_KV_CACHE_LAYOUT", **given}]
    return verdict(cache_layout, resource(model, backend=backend, engine={"env": env, **engine}))


@pytest.mark.parametrize(
    ("model", "backend", "layout"),
    [
        *((ALIKE, "KVTier", each) for each in ("BLHNC", "BLNHC", "BHLNC")),
        (UNLIKE, "KVTier", "BLHNC"),
        (STATES, "KVTier", "BLHNC"),
        (ALIKE, "Native", "LBNHC"),
        (UNLIKE, "Native", "LBHNC"),
    ],
)
def test_as_planned(model: str, backend: str, layout: str) -> None:
    says(laid_out(model, backend, layout), PASS, "Passed")


@pytest.mark.parametrize(("model", "layout"), [(ALIKE, "HND"), (ALIKE, "LHBNC"), (STATES, "LBNHC")])
def test_copies_are_slower(model: str, layout: str) -> None:
    says(laid_out(model, "KVTier", layout), WARN, "LayoutCopiesSlowly", layout, "passes it on")


@pytest.mark.parametrize(
    ("model", "backend", "layout"),
    [
        (UNLIKE, "KVTier", "LBHNC"),
        (UNLIKE, "KVTier", FROM),
        (UNLIKE, "KVTier", "BHLNC"),
        (STATES, "KVTier", "LHBNC"),
        (UNLIKE, "Native", "BLHNC"),
    ],
)
def test_other_blocks_than_planned(model: str, backend: str, layout: str | dict[str, Any]) -> None:
    result = laid_out(model, backend, layout)
    says(result, REJECT, "LayoutNotPlanned", "remove it")
    assert result.field == "spec.engine.env[VLLM_KV_CACHE_LAYOUT]"


@pytest.mark.parametrize(("layout", "outcome"), [("LBHNC", PASS), ("BLHNC", REJECT)])
def test_a_cpu_has_one_layout(layout: str, outcome: object) -> None:
    assert laid_out(ALIKE, "KVTier", layout, device="cpu").outcome is outcome


def test_without_the_variable() -> None:
    says(verdict(cache_layout, resource()), PASS, "Passed")
