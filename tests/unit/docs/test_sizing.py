"""The page of sizes says what the planner does."""

import re

import pytest
from tests.cases.planning import check_input, resource
from tests.unit.docs.pages import DOCS

from kvtier_operator.planning.checks import run_checks
from kvtier_operator.planning.cluster.storage import Namespace, storage_verdicts
from kvtier_operator.planning.model_shape.catalogue import entries
from kvtier_operator.planning.model_shape.geometry import Geometry
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


def planned(model: str, **engine: object) -> Geometry:
    """Of the catalogue's model whose name begins so."""
    [name] = [name for name in entries() if name.partition("/")[2].startswith(model)]
    return make_plan(resource(name, engine=engine), Observed()).geometry


def test_sizes_of_hybrid_models() -> None:
    prefixes = re.findall(r"([\d.]+) MiB for\s([\w.-]+-[\w.-]*\w)", PAGE)
    assert [f"{planned(model).bytes_per_prefix / 2**20:g}" for _, model in prefixes] == [
        size for size, _ in prefixes
    ]
    paragraph = PAGE.partition("needs a block whose page")[2].partition("\n\n")[0]
    blocks = re.findall(r"([A-Z][\w.-]+): ([\d,]+)", paragraph)
    assert (len(prefixes), len(blocks)) == (3, 3)
    assert [f"{planned(model).block_tokens:,}" for model, _ in blocks] == [tokens for _, tokens in blocks]
    on_eight = planned("Qwen3.5-397B", tensorParallelSize=8).block_tokens
    newer = planned("Qwen3.5-27B", image="vllm/vllm-openai:v0.33.0").block_tokens
    assert f"({on_eight} on 8 ranks)" in PAGE
    assert f"({newer} with 0.33, but not on Ampere)" in PAGE


def test_every_check_is_described() -> None:
    assert len(EXAMPLES) == len(REPOSITORIES)
    names = [check.name for check in run_checks(check_input(resource()))]
    described = re.findall(r"^\| ([a-z0-9-]+) \|", PAGE.partition("## Checks")[2], re.MULTILINE)
    plan = make_plan(resource(), Observed())
    of_namespaces = [check.name for check in storage_verdicts(plan, Namespace(unseen=("anything",)))]
    assert described == [*names, *of_namespaces]
