from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.checks.block_size import block_size


def test_16_tokens_on_cuda() -> None:
    says(verdict(block_size, resource()), PASS, "Passed")


def test_cuda_needs_multiples_of_16() -> None:
    result = verdict(block_size, resource(engine={"blockSize": 24}))
    says(result, REJECT, "BlockSizeNotSupported", "24 tokens", "set it to 32")
    assert result.field == "spec.engine.blockSize"


def test_the_cpu_needs_multiples_of_32() -> None:
    result = verdict(block_size, resource(engine={"device": "cpu", "blockSize": 16}))
    says(result, REJECT, "BlockSizeNotSupported", "16 tokens", "set it to 32, or to 128")


def test_32_tokens_on_the_cpu() -> None:
    says(verdict(block_size, resource(engine={"device": "cpu", "blockSize": 32})), PASS, "Passed")


def test_the_cpu_has_a_block_of_its_own_where_none_is_given() -> None:
    says(verdict(block_size, resource(engine={"device": "cpu"})), PASS, "Passed", "128 tokens")


def test_mla_on_the_cpu_has_no_prefix_cache() -> None:
    one = resource("deepseek-ai/DeepSeek-V2-Lite", engine={"device": "cpu", "blockSize": 16})
    result = verdict(block_size, one)
    says(result, WARN, "PrefixCachingOff", "AMX")
    assert result.field == "spec.engine.device"


def test_a_state_raises_the_block() -> None:
    result = verdict(block_size, resource("Qwen/Qwen3-Next-80B-A3B-Instruct"))
    says(result, WARN, "BlockSizeRaised", "16 to 544 tokens")
