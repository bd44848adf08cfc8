"""The page of sizes says what the planner does."""

import re

import pytest
from tests.cases.planning import check_input, resource
from tests.unit.docs.pages import DOCS

from kvtier_operator.planning.checks import run_checks
from kvtier_operator.planning.cluster.storage import Namespace, storage_verdicts
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan

PAGE = (DOCS / "reference" / "sizing.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^\| ([\w.-]+) \| [^|]+ \| ([\d,]+) \| ([\d,]+)", PAGE, re.MULTILINE)
REPOSITORIES = {
    "Qwen3-32B": "Qwen/Qwen3-32B",
    "Llama-3.1-8B": "meta-llama/Llama-3.1-8B",
    "DeepSeek-V3": "deepseek-ai/DeepSeek-V3",
    "gpt-oss-120b": "openai/gpt-oss-120b",
}


@pytest.mark.parametrize(("model", "per_token", "tokens"), EXAMPLES)
def test_examples(model: str, per_token: str, tokens: str) -> None:
    given = check_input(resource(REPOSITORIES[model]))
    assert f"{given.geometry.kv_bytes_per_token:,}" == per_token
    assert f"{given.tiers.cpu.tokens:,}" == tokens


def test_every_check_is_described() -> None:
    assert len(EXAMPLES) == len(REPOSITORIES)
    names = [check.name for check in run_checks(check_input(resource()))]
    described = re.findall(r"^\| ([a-z0-9-]+) \|", PAGE.partition("## Checks")[2], re.MULTILINE)
    plan = make_plan(resource(), Observed())
    of_namespaces = [check.name for check in storage_verdicts(plan, Namespace(unseen=("anything",)))]
    assert described == [*names, *of_namespaces]
