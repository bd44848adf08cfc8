import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.checks.cache_blocks import prefix_fills_block

NEXT = "Qwen/Qwen3-Next-80B-A3B-Instruct"


@pytest.mark.parametrize("longest", [256, 544])
def test_a_longest_sequence_that_no_block_fits_in(longest: int) -> None:
    # the block grows to 544 tokens to hold a state; a hit leaves one token to compute
    result = verdict(prefix_fills_block, resource(NEXT, engine={"maxModelLen": longest}))
    says(result, REJECT, "NothingCanBeFound", f"{longest} tokens", "a block has 544", "above 576")
    assert result.field == "spec.engine.maxModelLen"


@pytest.mark.parametrize("longest", [545, 576])
def test_one_that_only_some_blocks_fit_in(longest: int) -> None:
    result = verdict(prefix_fills_block, resource(NEXT, engine={"maxModelLen": longest}))
    says(result, WARN, "NothingMayBeFound", "544", "576 on some GPUs or with vLLM 0.33", "above 576")


@pytest.mark.parametrize("engine", [{"maxModelLen": 577}, {}])
def test_one_that_is_longer_than_a_block(engine: dict[str, int]) -> None:
    says(verdict(prefix_fills_block, resource(NEXT, engine=engine)), PASS, "Passed", "from 544 tokens on")


def test_a_model_without_states() -> None:
    says(verdict(prefix_fills_block, resource(engine={"maxModelLen": 16})), REJECT, "NothingCanBeFound", "16")
    says(verdict(prefix_fills_block, resource(engine={"maxModelLen": 17})), PASS, "Passed")
