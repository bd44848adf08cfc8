from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.checks.cache_blocks import block_size


def test_16_tokens_on_cuda() -> None:
    says(verdict(block_size, resource()), PASS, "Passed")


def test_cuda_needs_multiples_of_16() -> None:
    result = verdict(block_size, resource(engine={"blockSize": 24}))
    says(result, REJECT, "BlockSizeNotSupported", "24 tokens", "set it to 32")
    assert result.field == "spec.engine.blockSize"


def test_the_cpu_needs_multiples_of_32() -> None:
    result = verdict(block_size, resource(engine={"device": "cpu", "blockSize": 16}))
    says(result, REJECT, "BlockSizeNotSupported", "16 tokens", "set it to 32, or leave it out")


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
    says(result, WARN, "BlockSizeRaised", "16 to 544 tokens", "holds a whole linear-attention state")


def test_a_block_of_packed_elements_is_raised() -> None:
    result = verdict(block_size, resource(engine={"kvCacheDtype": "turboquant_k8v4"}))
    says(result, WARN, "BlockSizeRaised", "16 to 32 tokens", "covers one that is not")


def test_sparse_mla_takes_64_tokens_and_no_less() -> None:
    says(verdict(block_size, resource("deepseek-ai/DeepSeek-V3.2")), PASS, "Passed", "64 tokens")
    result = verdict(block_size, resource("deepseek-ai/DeepSeek-V3.2", engine={"blockSize": 16}))
    says(result, REJECT, "BlockSizeNotSupported", "16 tokens", "sparse MLA", "set it to 64")
    assert result.field == "spec.engine.blockSize"


def test_a_block_that_fast_kernels_do_not_take() -> None:
    result = verdict(block_size, resource("deepseek-ai/DeepSeek-V3", engine={"blockSize": 16}))
    says(result, WARN, "SlowAttention", "on Blackwell (B200)", "set it to 32")
    fp8 = {"blockSize": 16, "kvCacheDtype": "fp8"}
    result = verdict(block_size, resource("deepseek-ai/DeepSeek-V3", engine=fp8))
    says(result, WARN, "SlowAttention", "on Hopper (H100, H200) and Blackwell (B200)", "set it to 64")
    says(verdict(block_size, resource("deepseek-ai/DeepSeek-V3")), PASS, "Passed")


def test_images_need_a_kernel_of_their_own() -> None:
    result = verdict(block_size, resource("google/gemma-3-12b-it", engine={"blockSize": 16}))
    says(result, WARN, "SlowAttention", "on Blackwell (B200)", "set it to 64")


def test_a_backend_that_is_named_decides() -> None:
    named = {"extraArgs": ["--attention-backend=cutlass_mla"]}
    says(verdict(block_size, resource("deepseek-ai/DeepSeek-V3", engine=named)), PASS, "Passed", "128 tokens")
    result = verdict(block_size, resource("deepseek-ai/DeepSeek-V3", engine=named | {"blockSize": 64}))
    says(result, REJECT, "BlockSizeNotSupported", "multiple of 128")
