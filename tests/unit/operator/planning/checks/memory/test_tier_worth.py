"""Checks of what a tier is worth: tier-holds-sequence, tier-larger-than-device, tier-pays, weights-known."""

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.api.spec.tiers import Backend
from kvtier_operator.planning.checks.memory.tier_holds_sequence import tier_holds_sequence
from kvtier_operator.planning.checks.memory.tier_larger_than_device import tier_larger_than_device
from kvtier_operator.planning.checks.memory.tier_pays import tier_pays
from kvtier_operator.planning.checks.model.weights_known import weights_known
from kvtier_operator.planning.observed import Observed

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


@pytest.mark.parametrize("backend", [each.value for each in Backend])
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


def test_break_even_of_a_dense_model() -> None:
    # loading: 262,144 B / 40 GB/s = 6.55 us a token; prefill: 65.5 GFLOP / 400 TFLOP/s = 164 us;
    # 5 ms / (164 - 6.55 us) = 31.8 -> 32 tokens
    result = verdict(tier_pays, resource())
    says(result, PASS, "Pays", "152,587 tokens/s", "6,104 tokens/s", "from 32 cached tokens")


def test_break_even_of_the_disk_is_later() -> None:
    # loading: 262,144 B / 2 GB/s = 131 us a token; 20 ms / (163.81 - 131.07 us) = 610.9 -> 611 tokens
    result = verdict(tier_pays, resource(backend="LMCache", tiers=DISK))
    says(result, PASS, "Pays", "7,629 tokens/s", "from 611 cached tokens")


def test_a_small_model_computes_faster_than_a_disk_reads() -> None:
    result = verdict(tier_pays, resource("Qwen/Qwen3-0.6B", backend="LMCache", tiers=DISK))
    says(result, WARN, "TierDoesNotPay", "disk")
    assert result.field == "spec.tiers.disk"


def test_a_tiny_model_computes_faster_than_memory_is_read() -> None:
    one = resource("x/y", engine={"device": "cuda"})
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
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, 16),
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
