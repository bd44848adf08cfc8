"""Checks of what the device's cache and the tiers hold."""

from typing import Any

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.api.spec.gpu import LARGEST
from kvtier_operator.api.spec.tiers import Backend
from kvtier_operator.planning.checks.capacity import (
    device_cache,
    tier_holds_sequence,
    tier_larger_than_device,
    tier_pays,
)
from kvtier_operator.planning.checks.picker import picker_gpu_entries
from kvtier_operator.planning.checks.weights import weights_known
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.verdict import CheckResult, Outcome


def test_unknown_before_the_engine_runs() -> None:
    says(verdict(device_cache, resource()), PASS, "Unknown")


def test_room_for_the_longest_sequence_on_the_device() -> None:
    # 10 GiB hold exactly 40,960 tokens of 256 KiB, the model's longest sequence
    says(verdict(device_cache, resource(engine={"kvCacheMemory": "10Gi"})), PASS, "Passed", "40,960 tokens")


def test_windows_of_short_prefixes_are_no_part_of_a_longest_sequence() -> None:
    gemma = resource(
        "google/gemma-3-27b-it",
        tiers={"cpu": {"capacity": "100Gi", "expectedPrefixTokens": 256}},
        engine={"kvCacheMemory": "20Gi"},
    )
    says(verdict(device_cache, gemma), PASS, "Passed", "262,144 tokens")


def test_no_room_for_the_longest_sequence_on_the_device() -> None:
    result = verdict(device_cache, resource(engine={"kvCacheMemory": "10Gi", "maxModelLen": 40_961}))
    says(result, REJECT, "SequenceDoesNotFit", "holds 40,960 tokens", "has 40,961")
    assert result.field == "spec.engine.kvCacheMemory"
    assert (
        "set spec.engine.maxModelLen to at most 40,960, or set spec.engine.kvCacheMemory to at"
        in result.message
    )


def test_no_sequence_has_no_tokens() -> None:
    result = verdict(device_cache, resource(engine={"kvCacheMemory": "1Mi"}))
    says(
        result,
        REJECT,
        "SequenceDoesNotFit",
        "holds 0 tokens",
        "set spec.engine.kvCacheMemory to at least 10 GiB",
    )
    assert "maxModelLen" not in result.message


def test_an_estimate_only_warns() -> None:
    # 80 GiB x 0.92 - 61.02 GiB - 4 GiB = 8.58 GiB
    result = verdict(device_cache, resource(engine={"gpuMemory": "80Gi"}))
    says(result, WARN, "SequenceMayNotFit", "by estimate", "spec.engine.maxModelLen")
    # which a GPU of this size would not have room for
    assert "kvCacheMemory" not in result.message


def test_weights_that_leave_nothing() -> None:
    result = verdict(device_cache, resource(engine={"gpuMemory": "40Gi"}))
    says(result, REJECT, "NoRoomForCache", "61.02 GiB", "on the one GPU of 40 GiB", "spec.model.weights")
    assert result.field == "spec.engine.gpuMemory"
    named = verdict(device_cache, resource(engine={"gpu": "l40s"}))
    says(named, REJECT, "NoRoomForCache", "on the one GPU of 44.30 GiB")
    assert named.field == "spec.engine.gpu"


LLAMA = "meta-llama/Llama-3.1-405B"


def test_what_is_advised_for_weights_is_enough() -> None:
    engine: dict[str, Any] = {"gpu": "h100"}
    result = verdict(device_cache, resource(LLAMA, engine=engine))
    # 755.96 GiB / 8 is more than 79.10 GiB x 0.92 = 72.77 GiB, a half of it is less
    says(
        result,
        REJECT,
        "NoRoomForCache",
        "the weights take 755.96 GiB on the one GPU",
        "ParallelSize 16",
        "has 8",
    )
    assert "gpuMemoryUtilization" not in result.message
    says(verdict(device_cache, resource(LLAMA, engine={**engine, "tensorParallelSize": 16})), PASS, "Passed")
    assert "take a larger GPU or a smaller checkpoint" in result.message
    engine = {"gpu": LARGEST, "tensorParallelSize": 8}
    largest = verdict(device_cache, resource(LLAMA, model_fields={"weights": "4Ti"}, engine=engine))
    says(largest, REJECT, "NoRoomForCache", "or take a smaller checkpoint")
    h200 = verdict(device_cache, resource(LLAMA, engine={"gpu": "h200"}))
    says(h200, REJECT, "NoRoomForCache", "or set spec.engine.tensorParallelSize to at least 8")


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ({}, ("755.96 GiB on the one GPU", "mi355x, has 287.90 GiB", "tensorParallelSize to at least 4")),
        ({"kvCacheMemory": "100Gi"}, ("beside a KV cache of 100Gi", "to at least 8", "lower spec.engine.kv")),
        (
            {"gpu": "h100", "kvCacheMemory": "60Gi", "tensorParallelSize": 8},
            ("94.50 GiB beside", "which has 79.10 GiB", "needs tensorParallelSize 64", "usually has 8"),
        ),
    ],
    ids=str,
)
def test_what_no_gpu_holds(engine: dict[str, Any], words: tuple[str, ...]) -> None:
    result = verdict(device_cache, resource(LLAMA, engine=engine))
    says(result, REJECT, "NoGPUHolds", *words)
    says(verdict(device_cache, resource(LLAMA, engine={"tensorParallelSize": 4})), PASS, "Unknown")


SLICE = {"resources": {"limits": {"nvidia.com/mig-1g.20gb": 1}}, "maxModelLen": 8_192}


@pytest.mark.parametrize(
    ("model", "engine", "left"),
    [
        # 20 GiB x 0.92 - 15.26 GiB
        ("Qwen/Qwen3-8B", {"gpuMemory": "20Gi", **SLICE}, "3.14 GiB"),
        # 141,107,412,992 B / 2 in fp8
        (
            "meta-llama/Llama-3.3-70B-Instruct",
            {"gpuMemory": "72Gi", "extraArgs": ["-q", "fp8"]},
            "544.50 MiB",
        ),
    ],
)
def test_what_an_allowance_leaves_nothing_of_may_fit(model: str, engine: dict[str, Any], left: str) -> None:
    one = resource(model, engine=engine)
    result = verdict(device_cache, one)
    ways = ("spec.model.weights", "spec.engine.gpuMemoryUtilization", "spec.engine.tensorParallelSize")
    says(result, WARN, "SequenceMayNotFit", f"leave {left} of what vLLM takes", *ways)
    says(verdict(picker_gpu_entries, one), PASS, "LeftToOperator", "set spec.engine.kvCacheMemory")


@pytest.mark.parametrize("method", ["fp8", "fp8_per_block", "mxfp8", "mxfp4"])
def test_weights_that_are_quantised_as_they_are_loaded(method: str) -> None:
    engine = {"gpuMemory": "141Gi", "extraArgs": [f"--quantization={method}"], "maxModelLen": 32_768}
    says(verdict(device_cache, resource("meta-llama/Llama-3.3-70B-Instruct", engine=engine)), PASS, "Passed")
    quantised = resource(
        "nvidia/Llama-3.1-70B-Instruct-FP8", engine=engine, model_fields={"weights": "131Gi"}
    )
    says(verdict(device_cache, quantised), REJECT, "NoRoomForCache", "131 GiB")


def test_adapters_of_unknown_size_take_no_room_that_is_there() -> None:
    engine = {"gpuMemory": "80Gi", "extraArgs": ["--enable-lora"]}
    geometry = {"layers": 48, "kvHeads": 4, "headDim": 128}
    one = resource("own/model", geometry=geometry, engine=engine, model_fields={"weights": "57Gi"})
    says(verdict(device_cache, one), PASS, "Unknown", "LoRA adapters")


def test_a_method_of_unknown_size_is_not_refused() -> None:
    engine = {"gpuMemory": "141Gi", "extraArgs": ["--quantization=torchao"]}
    result = verdict(device_cache, resource("meta-llama/Llama-3.3-70B-Instruct", engine=engine))
    says(result, PASS, "Unknown", "torchao on the GPU", "32.85 GiB to 131.42 GiB")


PARALLEL = ["--enable-expert-parallel"]


@pytest.mark.parametrize(
    ("model", "weights", "engine", "outcome", "words"),
    [
        ("deepseek-ai/DeepSeek-R1-0528", "642Gi", {"gpuMemory": "141Gi"}, PASS, "tokens on the device"),
        # 642 GiB x (0.966 / 8 + 0.034)
        (
            "deepseek-ai/DeepSeek-R1-0528",
            "642Gi",
            {"gpuMemory": "96Gi"},
            REJECT,
            "99.35 GiB on each of 8 GPUs",
        ),
        (
            "deepseek-ai/DeepSeek-R1-0528",
            "642Gi",
            {"gpuMemory": "110Gi"},
            WARN,
            "99.35 GiB on each of 8 GPUs",
        ),
        # a dense model is on every engine whole
        ("Qwen/Qwen3-32B", "61Gi", {"gpuMemory": "40Gi"}, REJECT, "61 GiB on each of 8 GPUs"),
    ],
)
def test_experts_are_shared_out_over_all_engines(
    model: str, weights: str, engine: dict[str, Any], outcome: Outcome, words: str
) -> None:
    engine = {"dataParallelSize": 8, "maxModelLen": 8_192, "extraArgs": PARALLEL, **engine}
    result = verdict(device_cache, resource(model, engine=engine, model_fields={"weights": weights}))
    assert result.outcome is outcome, result.message
    assert words in result.message


def test_what_nothing_tells_of_experts_is_a_range() -> None:
    geometry = {"layers": 61, "kvLoraRank": 512, "qkRopeHeadDim": 64}
    engine = {"gpuMemory": "141Gi", "dataParallelSize": 8}
    one = resource("a/b", geometry=geometry, engine=engine, model_fields={"weights": "642Gi"})
    says(verdict(device_cache, one), PASS, "Unknown", "80.25 GiB to 642 GiB on each of 8 GPUs", "cannot know")


@pytest.mark.parametrize("word", ["--cpu-offload-gb=40", "--offload-group-size=8"])
def test_weights_in_the_hosts_memory_are_not_refused(word: str) -> None:
    one = resource(engine={"gpuMemory": "40Gi", "extraArgs": [word]})
    says(verdict(device_cache, one), PASS, "Unknown", "0 B to 61.02 GiB on the one GPU")


DISK = {"disk": {"capacity": "1Ti", "volume": {"emptyDir": {}}}}
TINY = {"num_hidden_layers": 8, "num_attention_heads": 12, "num_key_value_heads": 2, "hidden_size": 768}


def test_room_for_the_longest_sequence() -> None:
    # 40,960 tokens x 262,144 B = 10 GiB
    says(verdict(tier_holds_sequence, resource(cpu="10Gi")), PASS, "Passed", "40,960 tokens")


def test_no_room_for_the_longest_sequence() -> None:
    result = verdict(tier_holds_sequence, resource(cpu="8Gi"))
    says(result, WARN, "SequenceLargerThanTier", "32,768 tokens", "40,960", "10 GiB")
    assert result.field == "spec.tiers.cpu.capacity"


def test_a_shorter_sequence_fits() -> None:
    says(verdict(tier_holds_sequence, resource(cpu="8Gi", engine={"maxModelLen": 32_768})), PASS, "Passed")


def test_each_engine_holds_its_own() -> None:
    one = resource(cpu="16Gi", engine={"dataParallelSize": 2})
    says(verdict(tier_holds_sequence, one), WARN, "SequenceLargerThanTier", "32,768 tokens", "20 GiB")


@pytest.mark.parametrize("backend", [backend.value for backend in Backend])
def test_less_than_a_byte_a_rank(backend: str) -> None:
    tiny = resource(backend=backend, cpu="1", engine={"tensorParallelSize": 8})
    says(verdict(tier_holds_sequence, tiny), REJECT, "TierHoldsNothing")


@pytest.mark.parametrize("backend", ["Native", "LMCache"])
def test_no_room_for_one_chunk(backend: str) -> None:
    result = verdict(tier_holds_sequence, resource(backend=backend, cpu="2Mi"))
    says(result, REJECT, "TierHoldsNothing", "2 MiB cannot hold one chunk")


def test_a_tier_not_larger_than_the_device() -> None:
    one = resource(cpu="20Gi", engine={"kvCacheMemory": "20Gi"})
    result = verdict(tier_larger_than_device, one)
    says(result, WARN, "TierAddsNothing", "CPU tier 81,920 tokens, device 81,920")


def test_a_tier_larger_than_the_device() -> None:
    one = resource(cpu="100Gi", engine={"kvCacheMemory": "20Gi"})
    says(verdict(tier_larger_than_device, one), PASS, "Passed", "5.0 times")


def test_the_device_keeps_windows_too() -> None:
    gemma = resource(
        "google/gemma-3-27b-it",
        tiers={"cpu": {"capacity": "100Gi", "expectedPrefixTokens": 4_000}},
        engine={"gpuMemory": "80Gi", "tensorParallelSize": 2},
    )
    says(verdict(tier_larger_than_device, gemma), PASS, "Passed", "CPU tier 516,800", "1.1 times")


def test_a_device_that_is_not_known() -> None:
    says(verdict(tier_larger_than_device, resource()), PASS, "Unknown")
    nothing = resource(engine={"gpuMemory": "40Gi"})
    says(verdict(tier_larger_than_device, nothing), PASS, "NothingOnDevice", "holds nothing")


def test_break_even_of_a_dense_model() -> None:
    # loading: 262,144 B / 40 GB/s = 6.55 us a token; prefill: 65.5 GFLOP / 400 TFLOP/s = 164 us;
    # 5 ms / (164 - 6.55 us) = 31.8 -> 32 tokens
    result = verdict(tier_pays, resource())
    says(result, PASS, "Pays", "152,587 tokens/s", "6,104 tokens/s", "from 32 cached tokens")


@pytest.mark.parametrize(
    ("gpu", "rates"),
    [
        # 0.625 x 64 GB/s / 262,144 B; 0.4 x 989 TFLOP/s / 65.5 GFLOP
        ("h100", ("152,587 tokens/s", "6,037 tokens/s")),
        ("l4", ("76,293 tokens/s", "738 tokens/s")),
    ],
)
def test_a_gpu_that_is_named_sets_both_speeds(gpu: str, rates: tuple[str, str]) -> None:
    says(verdict(tier_pays, resource(engine={"gpu": gpu})), PASS, "Pays", *rates)


def test_break_even_of_the_disk_is_later() -> None:
    # loading: 262,144 B / 2 GB/s = 131 us a token; 20 ms / (163.81 - 131.07 us) = 610.9 -> 611 tokens
    result = verdict(tier_pays, resource(backend="LMCache", tiers=DISK))
    says(result, PASS, "Pays", "7,629 tokens/s", "from 611 cached tokens")


def test_a_small_model_computes_faster_than_a_disk_reads() -> None:
    result = verdict(tier_pays, resource("Qwen/Qwen3-0.6B", backend="LMCache", tiers=DISK))
    says(result, WARN, "TierDoesNotPay", "disk")
    assert result.field == "spec.tiers.disk"


def test_a_tiny_model_computes_faster_than_memory_is_read() -> None:
    one = resource("x/y", engine={"device": "gpu"})
    result = verdict(tier_pays, one, Observed(model_config=TINY, weights_bytes=14_600_000))
    says(result, WARN, "TierDoesNotPay", "serve this model without a KVCacheTier")
    assert result.field == "spec.tiers.cpu"


def test_prefill_cannot_be_estimated_without_weights() -> None:
    result = verdict(tier_pays, resource("x/y", geometry={"kvBytesPerToken": 262_144}))
    says(result, PASS, "PrefillUnknown")


def test_experts_that_are_not_asked_compute_nothing() -> None:
    # 98,304 B / 2 GB/s = 49 us a token of the disk, 2 x 3.3 billion / 400 TFLOP/s = 16.5 us
    result = verdict(tier_pays, resource("Qwen/Qwen3-30B-A3B", tiers=DISK))
    says(result, WARN, "TierDoesNotPay", "disk brings 20,345 tokens/s", "about 60,606 tokens/s")
    assert "CPU" not in result.message
    overridden = {"extraArgs": ["--hf-overrides", '{"rope_theta": 1}']}
    for engine in ({}, overridden):
        one = resource("Qwen/Qwen3-30B-A3B", engine=engine)
        says(verdict(tier_pays, one), PASS, "Pays", "60,606 tokens/s")


@pytest.mark.parametrize("model", ["Qwen/Qwen3-32B", "Qwen/Qwen3-32B-AWQ", "Qwen/Qwen3-32B-FP8"])
def test_quantised_weights_are_no_fewer_parameters(model: str) -> None:
    one = resource(model, model_fields={"weights": "18Gi"}, backend="LMCache", tiers=DISK)
    says(verdict(tier_pays, one), PASS, "Pays", "6,104 tokens/s", "from 611 cached tokens")


@pytest.mark.parametrize(
    ("quantization", "gib"),
    [
        (None, 64),
        ({"quant_method": "awq", "bits": 4}, 16),
        ({"quant_method": "gptq"}, 16),
        ({"quant_method": "fp8"}, 32),
        ({"quant_method": "mxfp4"}, 16),
        ({"quantization": {"quant_algo": "NVFP4"}, "producer": {"name": "modelopt"}}, 16),
        ({"quant_method": "compressed-tensors", "config_groups": {"a": {"weights": {"num_bits": 8}}}}, 32),
    ],
)
def test_weights_tell_by_the_bytes_of_a_parameter(quantization: dict[str, object] | None, gib: int) -> None:
    # a config.json without the size of its MLPs
    observed = Observed(model_config=TINY | {"quantization_config": quantization}, weights_bytes=gib << 30)
    # 32 Gi parameters: 400 TFLOP/s / (2 x 34.4 billion)
    says(verdict(tier_pays, resource("x/y"), observed), PASS, "Pays", "about 5,820 tokens/s")


def test_memory_and_disk_are_both_judged() -> None:
    both = verdict(tier_pays, resource(backend="LMCache", tiers=DISK))
    says(both, PASS, "Pays", "from CPU", "from 32 cached tokens", "from disk", "from 611 cached tokens")
    observed = Observed(model_config=TINY, weights_bytes=14_600_000)
    neither = verdict(tier_pays, resource("x/y", tiers=DISK), observed)
    says(neither, WARN, "TierDoesNotPay", "from CPU", "from disk", "serve this model without")
    assert neither.field == "spec.tiers.cpu"


def test_the_cpu_computes_slowly() -> None:
    one = resource("x/y", engine={"device": "cpu", "blockSize": 32})
    result = verdict(tier_pays, one, Observed(model_config=TINY, weights_bytes=146_000_000))
    says(result, PASS, "Pays")


def test_weights_decide_a_cpu_engines_memory() -> None:
    one = resource("x/y", engine={"device": "cpu", "blockSize": 32})
    result = verdict(weights_known, one, Observed(model_config=TINY))
    says(result, WARN, "WeightsUnknown", "memory limit")
    assert result.field == "spec.model.weights"


def test_a_working_set_given_by_hand_needs_no_weights() -> None:
    asked = {"memory": "30Gi", "ephemeral-storage": "30Gi"}
    one = resource("x/y", engine={"device": "cpu", "blockSize": 32, "resources": {"requests": asked}})
    says(verdict(weights_known, one, Observed(model_config=TINY)), PASS, "Unknown")


def test_weights_are_known() -> None:
    says(verdict(weights_known, resource()), PASS, "Passed", "61.02 GiB")


def test_a_disk_pays_at_the_bandwidth_that_it_is_said_to_have() -> None:
    def judged(**disk: object) -> CheckResult:
        fields = {"capacity": "1Ti", "volume": {"emptyDir": {}}, **disk}
        return verdict(tier_pays, resource("Qwen/Qwen3-30B-A3B", tiers={"disk": fields}))

    says(judged(), WARN, "TierDoesNotPay", "spec.tiers.disk.bandwidth")
    says(judged(bandwidth="6G"), PASS, "Pays")
    assert "bandwidth" not in judged(bandwidth="3G").message
