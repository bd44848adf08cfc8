"""The words of the report's numbers: what a reader works out from them is the number."""

import re

import pytest
from tests.cases.planning import resource

from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.units import MIB, round_up


@pytest.mark.parametrize("backend", ["KVTier", "Native", "LMCacheMP"])
@pytest.mark.parametrize(
    "model", ["Qwen/Qwen3-32B", "google/gemma-3-27b-it", "openai/gpt-oss-120b", "Qwen/Qwen3.5-27B"]
)
def test_a_chunk_adds_up(model: str, backend: str) -> None:
    plan = make_plan(resource(model, backend=backend), Observed())
    (figure,) = (figure for figure in plan.figures if figure.name == "CPU tier chunk bytes")
    words = re.fullmatch(
        r"([\d,]+) tokens x ([\d,]+) B(?: \+ ([\d.]+) MiB of windows)?, to ([\d,]+) B each", figure.how
    )
    assert words, figure.how
    tokens, each, _, whole = (
        int(word.replace(",", "")) if word and "." not in word else 0 for word in words.groups()
    )
    windows = int(float(words[3] or 0) * MIB)
    assert figure.value == round_up(tokens * each + windows, whole)
