"""Checks of what LMCache asks: hybrid-models with its server, lmcache-chunk, adapter-keys."""

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.checks.cache_blocks import whole_chunks
from kvtier_operator.planning.checks.model import hybrid_models
from kvtier_operator.planning.checks.weights import adapter_keys

HYBRID = "Qwen/Qwen3.5-27B"


def with_args(
    *extra_args: str, model: str = HYBRID, backend: str = "LMCacheMP", ranks: int = 1
) -> KVCacheTier:
    engine = {"extraArgs": list(extra_args), "tensorParallelSize": ranks}
    return resource(model, backend=backend, engine=engine)


def test_a_step_below_a_block_is_refused() -> None:
    small = with_args("--max-num-batched-tokens", "512")
    result = verdict(hybrid_models, small)
    says(result, REJECT, "StepBelowBlock", "512", "784")
    assert result.field == "spec.engine.extraArgs[0]"
    says(verdict(hybrid_models, with_args("--max-num-batched-tokens=784")), PASS, "Passed", "784")
    says(
        verdict(hybrid_models, with_args("--max-num-batched-tokens", "512", backend="KVTier")), PASS, "Passed"
    )
    plain = with_args("--max-num-batched-tokens", "8", model="Qwen/Qwen3-32B")
    says(verdict(hybrid_models, plain), PASS, "Passed")


def test_a_block_that_a_default_step_may_not_hold() -> None:
    geometry = {"layers": 4, "kvHeads": 1, "headDim": 64, "linearLayers": 4, "stateBytesPerLayer": 2**21}
    one = resource("a/b", backend="LMCacheMP", geometry=geometry)
    says(verdict(hybrid_models, one), WARN, "StepMayBeBelowBlock", "8,192", "--max-num-batched-tokens 8192")


@pytest.mark.parametrize(
    ("backend", "says_salt"), [("LMCache", False), ("LMCacheMP", True)], ids=["in the engine", "beside it"]
)
def test_adapters_share_lmcaches_keys(backend: str, says_salt: bool) -> None:
    result = verdict(adapter_keys, with_args("--enable-lora", model="Qwen/Qwen3-32B", backend=backend))
    says(result, WARN, "AdaptersShareKeys", backend, "KVTier or Native")
    assert ("cache_salt" in result.message) is says_salt
    assert result.field == "spec.backend"


def test_others_keep_adapters_apart() -> None:
    for backend in ("KVTier", "Native"):
        one = with_args("--enable_lora", model="Qwen/Qwen3-32B", backend=backend)
        says(verdict(adapter_keys, one), PASS, "Passed", "apart")
    for extra_args in ([], ["--enable-lora", "--no-enable-lora"]):
        says(
            verdict(adapter_keys, with_args(*extra_args, model="Qwen/Qwen3-32B")),
            PASS,
            "Passed",
            "no adapters",
        )


def test_a_block_that_the_gpu_decides() -> None:
    model = "Qwen/Qwen3.5-35B-A3B"
    result = verdict(whole_chunks, with_args(model=model))
    says(result, WARN, "ChunkMayNotBeBlocks", "1,056 or 1,088", "set it to 64", "chunks of 1,056")
    assert result.field == "spec.engine.blockSize"
    settled = resource(model, backend="LMCacheMP", engine={"blockSize": 64})
    says(verdict(whole_chunks, settled), PASS, "Passed", "1,088")
    says(verdict(whole_chunks, with_args(model=model, backend="KVTier")), PASS, "Passed")
    says(verdict(whole_chunks, with_args(model="deepseek-ai/DeepSeek-V3.2")), PASS, "Passed", "256")
