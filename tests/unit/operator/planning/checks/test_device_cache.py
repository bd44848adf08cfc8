from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.checks.device_cache import device_cache


def test_unknown_before_the_engine_runs() -> None:
    says(verdict(device_cache, resource()), PASS, "Unknown")


def test_room_for_the_longest_sequence() -> None:
    # 10 GiB hold exactly 40,960 tokens of 256 KiB, the model's longest sequence
    says(verdict(device_cache, resource(engine={"kvCacheMemory": "10Gi"})), PASS, "Passed", "40,960 tokens")


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
    says(result, REJECT, "NoRoomForCache", "61.02 GiB", "40 GiB")
    assert result.field == "spec.engine.gpuMemory"
