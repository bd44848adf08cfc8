"""Checks of the engine's blocks."""

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import plan_sizes, resource

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.checks.adapters import adapter_keys
from kvtier_operator.planning.checks.cache_blocks import (
    block_hash,
    block_size,
    hybrid_manager,
    prefix_fills_block,
    retention_interval,
    whole_chunks,
)
from kvtier_operator.planning.checks.model import hybrid_models
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan

DISK = {"disk": {"capacity": "1Ti", "volume": {"emptyDir": {}}}}


@pytest.mark.parametrize(
    "given",
    [
        ["--prefix-caching-hash-algo", "xxhash"],
        ["--prefix-caching-hash-algo=xxhash_cbor"],
        ["--prefix_caching_hash_algo", "xxhash"],
        ["--prefix_caching-hash_algo=xxhash"],
        ["--prefix-caching-hash", "xxhash"],
        ["--prefix-caching-hash-algo", "sha256", "--prefix-caching-hash-algo", "xxhash"],
    ],
    ids=" ".join,
)
def test_a_hash_that_can_be_collided(given: list[str]) -> None:
    algorithm = "xxhash_cbor" if "cbor" in given[0] else "xxhash"
    result = verdict(block_hash, resource(engine={"extraArgs": given}))
    says(result, WARN, "BlockHashNotCryptographic", f"algo {algorithm}:", "share its tier so", "set sha256")
    last = max(place for place, word in enumerate(given) if word.startswith("--"))
    assert result.field == f"spec.engine.extraArgs[{last}]"
    says(
        verdict(block_hash, resource(engine={"extraArgs": given}, tiers=DISK)),
        WARN,
        "BlockHashNotCryptographic",
        "the disk's after a restart too",
    )


@pytest.mark.parametrize(
    "given",
    [
        [],
        ["--prefix-caching-hash-algo", "sha256_cbor"],
        ["--prefix-caching-hash-algo", "xxhash", "--prefix_caching_hash_algo=sha256"],
        ["--served-by", "xxhash"],
    ],
    ids=" ".join,
)
def test_a_cryptographic_one(given: list[str]) -> None:
    says(verdict(block_hash, resource(engine={"extraArgs": given}, tiers=DISK)), PASS, "Passed", "sha256")


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


NEWER = {"image": "vllm/vllm-openai:v0.33.0"}
"""Its blocks of Gated DeltaNet differ by the GPU; those of 0.32 do not."""


def test_a_state_raises_the_block() -> None:
    says(verdict(block_size, resource("Qwen/Qwen3-Next-80B-A3B-Instruct")), WARN, "BlockSizeRaised", "to 544")
    result = verdict(block_size, resource("Qwen/Qwen3-Next-80B-A3B-Instruct", engine=NEWER))
    says(result, WARN, "BlockSizeRaised", "16 to 576 tokens", "holds a whole linear-attention state")


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


NEXT = "Qwen/Qwen3-Next-80B-A3B-Instruct"


@pytest.mark.parametrize("longest", [256, 544])
def test_a_longest_sequence_that_no_block_fits_in(longest: int) -> None:
    # the block grows to 544 tokens on Ampere to hold a state; a hit leaves one token to compute
    result = verdict(prefix_fills_block, resource(NEXT, engine={**NEWER, "maxModelLen": longest}))
    says(result, REJECT, "NothingCanBeFound", f"{longest} tokens", "a block has 544", "above 576")
    assert result.field == "spec.engine.maxModelLen"


@pytest.mark.parametrize("longest", [545, 576])
def test_one_that_only_some_blocks_fit_in(longest: int) -> None:
    result = verdict(prefix_fills_block, resource(NEXT, engine={**NEWER, "maxModelLen": longest}))
    says(result, WARN, "NothingMayBeFound", "544 or 576, by the GPU", "above 576")


@pytest.mark.parametrize("engine", [{"maxModelLen": 577}, {}])
def test_one_that_is_longer_than_a_block(engine: dict[str, int]) -> None:
    one = resource(NEXT, engine={**NEWER, **engine})
    says(verdict(prefix_fills_block, one), PASS, "Passed", "from 576 tokens on")


def test_a_model_without_states() -> None:
    says(verdict(prefix_fills_block, resource(engine={"maxModelLen": 16})), REJECT, "NothingCanBeFound", "16")
    says(verdict(prefix_fills_block, resource(engine={"maxModelLen": 17})), PASS, "Passed")


OFF = "--disable-hybrid-kv-cache-manager"
ON = "--no-disable-hybrid-kv-cache-manager"
PLAIN, WINDOWS, STATES = "Qwen/Qwen3-32B", "openai/gpt-oss-120b", "Qwen/Qwen3-Next-80B-A3B-Instruct"


def with_switch(model: str, *arguments: str, backend: str = "KVTier") -> KVCacheTier:
    return resource(model, backend=backend, engine={"extraArgs": [*arguments]})


@pytest.mark.parametrize("model", [PLAIN, WINDOWS, STATES])
@pytest.mark.parametrize("arguments", [[], [ON], [OFF, ON]])
def test_vllm_decides(model: str, arguments: list[str]) -> None:
    says(verdict(hybrid_manager, with_switch(model, *arguments)), PASS, "Passed")


@pytest.mark.parametrize("word", [OFF, "--disable_hybrid_kv_cache_manager", "--disable-hybrid"])
def test_a_model_with_states_does_not_start_without_it(word: str) -> None:
    result = verdict(hybrid_manager, with_switch(STATES, word))
    says(result, REJECT, "HybridManagerNeeded", OFF, "remove it")
    assert result.field == "spec.engine.extraArgs[0]"


def test_a_model_with_windows_keeps_them_in_full() -> None:
    says(verdict(hybrid_manager, with_switch(WINDOWS, OFF)), WARN, "WindowsKeptInFull", OFF)


def test_other_models_do_not_need_it() -> None:
    says(verdict(hybrid_manager, with_switch(PLAIN, OFF)), PASS, "Passed")


def test_latents_and_a_draft_of_heads_have_no_windows() -> None:
    words = [OFF, "--spec-model", "a/b-eagle3", "--spec-tokens", "3"]
    drafting = resource("deepseek-ai/DeepSeek-V3", engine={"extraArgs": words})
    says(verdict(hybrid_manager, drafting), PASS, "Passed", "every layer keeps every token")


def test_lmcache_in_the_engine_cannot_have_it() -> None:
    says(verdict(hybrid_manager, with_switch(PLAIN, OFF, backend="LMCache")), PASS, "Passed")
    result = verdict(hybrid_manager, with_switch(PLAIN, ON, backend="LMCache"))
    says(result, REJECT, "HybridManagerNotSupported", ON)


OPTION = "--prefix-cache-retention-interval"


def with_interval(model: str, *arguments: str, backend: str = "KVTier") -> KVCacheTier:
    return resource(model, engine={"extraArgs": [*arguments]}, backend=backend)


@pytest.mark.parametrize("model", [PLAIN, WINDOWS, STATES])
@pytest.mark.parametrize("arguments", [[], [OPTION, "0"], [OPTION, "1088", f"{OPTION}=0"]])
def test_vllm_s_own(model: str, arguments: list[str]) -> None:
    says(verdict(retention_interval, with_interval(model, *arguments)), PASS, "Passed")


def test_a_model_that_keeps_every_token_takes_none() -> None:
    result = verdict(retention_interval, with_interval(PLAIN, OPTION, "4096"))
    says(result, REJECT, "RetentionIntervalNotSupported", "4096", "remove it")
    assert result.field == "spec.engine.extraArgs[0]"
    says(verdict(retention_interval, with_interval(PLAIN, OPTION, "None")), PASS, "Passed")
    in_full = with_interval(WINDOWS, OPTION, "4096", backend="LMCache")
    says(verdict(retention_interval, in_full), REJECT, "RetentionIntervalNotSupported")


def test_only_multiples_of_blocks_and_chunks() -> None:
    # blocks of 544 tokens, chunks of one
    says(
        verdict(retention_interval, with_interval(STATES, OPTION, "1000")),
        REJECT,
        "RetentionIntervalNotSupported",
        "multiples of 544",
        "set it to 1088",
    )
    says(
        verdict(retention_interval, with_interval(WINDOWS, OPTION, "96")),
        REJECT,
        "RetentionIntervalNotSupported",
    )
    says(
        verdict(retention_interval, with_interval(WINDOWS, OPTION, "96", backend="Native")),
        WARN,
        "StatesKeptOften",
    )


def test_what_is_kept_more_often_takes_more() -> None:
    result = verdict(retention_interval, with_interval(STATES, f"{OPTION}=5440"))
    says(result, WARN, "StatesKeptOften", "every 5,440 tokens", "a prefix of 262,144 tokens")
    says(
        verdict(retention_interval, with_interval(STATES, OPTION, "None")),
        WARN,
        "StatesKeptOften",
        "every 544",
    )


@pytest.mark.parametrize(
    ("interval", "kept"),
    [
        ("4096", "15.47 GiB"),  # 480 MiB x (1 + 131,072 / 4,096)
        ("512", "60.47 GiB"),  # windows of 1,024 tokens that share their halves: every token is kept
        ("None", "60.47 GiB"),
    ],
)
def test_the_plan_counts_what_the_warning_says(interval: str, kept: str) -> None:
    gemma = with_interval("google/gemma-3-27b-it", OPTION, interval)
    result = verdict(retention_interval, gemma)
    says(result, WARN, "StatesKeptOften", kept, "of 131,072 tokens", "480 MiB", "for the picker")
    tiers, _, _ = plan_sizes(gemma)
    beside = {"15.47 GiB": 33 * 480, "60.47 GiB": 129 * 480}[kept] << 20
    part = 131_072 * 81_920 / (131_072 * 81_920 + beside)
    assert tiers.cpu.tokens == pytest.approx((100 << 30) / 81_920 * part, rel=0.001)
    (tokens,) = (
        figure.how for figure in make_plan(gemma, Observed()).figures if figure.name == "CPU tier tokens"
    )
    assert f"{kept} a prefix" in tokens


@pytest.mark.parametrize("value", ["many", "-16", "1.5", "٣"])
def test_what_is_no_number(value: str) -> None:
    result = verdict(retention_interval, with_interval(STATES, f"{OPTION}={value}"))
    says(result, REJECT, "RetentionIntervalNotSupported", value)


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
        verdict(hybrid_models, with_args("--max-num-batched-tokens=0.5k")), REJECT, "StepBelowBlock", " 500 "
    )
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
