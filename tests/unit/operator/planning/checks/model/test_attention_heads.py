import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.checks.model import attention_heads
from kvtier_operator.planning.observed import Observed

SIX_HEADS = {"num_hidden_layers": 4, "num_attention_heads": 12, "num_key_value_heads": 6, "head_dim": 64}


def test_heads_that_can_be_shared_out() -> None:
    says(verdict(attention_heads, resource(engine={"tensorParallelSize": 8})), PASS, "Passed")


def test_a_latent_needs_no_sharing_out() -> None:
    one = resource("deepseek-ai/DeepSeek-V3", engine={"tensorParallelSize": 16})
    says(verdict(attention_heads, one), PASS, "Passed")


def test_replicated_heads_are_said() -> None:
    result = verdict(attention_heads, resource(engine={"tensorParallelSize": 16}))
    says(result, WARN, "KVHeadsReplicated", "8 KV heads on 16 ranks", "2 times")


def test_not_every_model_has_its_heads_replicated() -> None:
    one = resource("openai/gpt-oss-120b", engine={"tensorParallelSize": 16})
    says(verdict(attention_heads, one), REJECT, "KVHeadsNotReplicated", "8 KV heads on 16 ranks", "8 ranks")


def test_query_heads_must_be_a_multiple() -> None:
    result = verdict(attention_heads, resource(engine={"tensorParallelSize": 3}))
    says(result, REJECT, "HeadsNotDivisible", "64 attention heads", "3 ranks", "1, 2, 4, 8, 16, 32, 64")
    assert result.field == "spec.engine.tensorParallelSize"


def test_kv_heads_must_divide_or_be_divided() -> None:
    one = resource("x/y", engine={"tensorParallelSize": 4})
    result = verdict(attention_heads, one, Observed(model_config=SIX_HEADS))
    says(result, REJECT, "KVHeadsNotDivisible", "6 KV heads and 4 ranks", "1, 2, 3, 6")


@pytest.mark.parametrize(
    ("model", "ranks", "heads"),
    [
        ("nvidia/Nemotron-H-56B-Base-8K", 16, "8 heads or groups"),  # of 8 groups
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", 8, None),
        ("nvidia/Nemotron-H-56B-Base-8K", 8, None),
    ],
)
def test_states_are_shared_out_too(model: str, ranks: int, heads: str | None) -> None:
    result = verdict(attention_heads, resource(model, engine={"tensorParallelSize": ranks}))
    assert (result.reason == "StateNotDivisible") == (heads is not None)
    assert heads is None or heads in result.message
