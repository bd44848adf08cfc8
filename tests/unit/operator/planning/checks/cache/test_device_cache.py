from typing import Any

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.checks.capacity import device_cache
from kvtier_operator.planning.checks.picker import picker_gpu_entries
from kvtier_operator.planning.verdict import Outcome


def test_unknown_before_the_engine_runs() -> None:
    says(verdict(device_cache, resource()), PASS, "Unknown")


def test_room_for_the_longest_sequence() -> None:
    # 10 GiB hold exactly 40,960 tokens of 256 KiB, the model's longest sequence
    says(verdict(device_cache, resource(engine={"kvCacheMemory": "10Gi"})), PASS, "Passed", "40,960 tokens")


def test_windows_of_short_prefixes_are_no_part_of_a_longest_sequence() -> None:
    gemma = resource(
        "google/gemma-3-27b-it",
        tiers={"cpu": {"capacity": "100Gi", "expectedPrefixTokens": 256}},
        engine={"kvCacheMemory": "20Gi"},
    )
    says(verdict(device_cache, gemma), PASS, "Passed", "262,144 tokens")


def test_no_room_for_the_longest_sequence() -> None:
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
