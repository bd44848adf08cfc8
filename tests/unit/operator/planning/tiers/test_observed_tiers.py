"""A running engine corrects the picker and the status, and never its own pod."""

from dataclasses import replace

import pytest
from tests.cases.kvcachetier import DISK
from tests.unit.operator.planning.backends.planned import resource

from kvtier_common.tier import Tier
from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.observed import EngineTokens, Observed
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.planner import make_plan

SIZED: dict[str, object] = {"spec.engine.kvCacheMemory": "10Gi"}
PLANNED = 40_960
"""10 GiB of the device and 262,144 bytes a token."""


def plan(engine: EngineTokens | None, changes: dict[str, object]) -> Plan:
    return make_plan(resource(changes), Observed(engine=engine))


@pytest.mark.parametrize(
    ("tokens", "entries"),
    [
        (409_600, 6_400),
        (389_120, 6_400),  # 5 percent less
        (430_080, 6_400),  # 5 percent more
        (389_056, 6_079),  # one block beyond
        (204_800, 3_200),
        (819_200, 12_800),
    ],
)
def test_the_picker_follows_a_tier_that_is_clearly_of_another_size(tokens: int, entries: int) -> None:
    corrected = plan(EngineTokens({Tier.CPU: tokens}), SIZED)
    assert corrected.router.entries.get(Tier.CPU) == entries
    assert (corrected.tiers.cpu.tokens, corrected.tiers.cpu.observed_tokens) == (409_600, tokens)
    as_planned = corrected.router.config_hash == plan(None, SIZED).router.config_hash
    assert as_planned is (entries == 6_400)


@pytest.mark.parametrize("times", [1, 0.5, 1.5])
def test_an_engine_does_not_tell_tokens_from_states(times: float) -> None:
    # half of each prefix's bytes are states: 1,632 tokens x 24,576 B
    changes: dict[str, object] = {
        "spec.model.name": "Qwen/Qwen3-Next-80B-A3B-Instruct",
        "spec.tiers.cpu.expectedPrefixTokens": 1_632,
    }
    tier = plan(None, changes).tiers.cpu
    corrected = plan(EngineTokens({Tier.CPU: int(tier.held_tokens * times)}), changes)
    assert corrected.tiers.cpu.observed_tokens == int(tier.held_tokens * times)
    entries = corrected.router.entries.get(Tier.CPU)
    per_entry = corrected.router.tokens_per_entry
    assert entries == pytest.approx(tier.held_tokens * times / 2 / per_entry, rel=0.002)


def test_a_device_cache_that_nothing_planned_is_known_from_its_engine() -> None:
    assert plan(None, {}).tiers.gpu is None
    corrected = plan(EngineTokens({Tier.GPU: PLANNED}), {})
    assert corrected.tiers.gpu is not None
    assert corrected.tiers.gpu.capacity_bytes == 10 << 30
    assert corrected.router.entries.get(Tier.GPU) == PLANNED // 64


@pytest.mark.parametrize("memory", ["20Gi", None])
@pytest.mark.parametrize("times", [1, 0.5, 1.5])
@pytest.mark.parametrize("model", ["google/gemma-3-27b-it", "Qwen/Qwen3-Next-80B-A3B-Instruct"])
def test_the_device_s_blocks_tell_what_it_holds_of_prefixes(
    model: str, times: float, memory: str | None
) -> None:
    # vLLM's own number of tokens is less the windows and states of longest sequences
    changes: dict[str, object] = {"spec.model.name": model, "spec.tiers.cpu.expectedPrefixTokens": 4_000}
    sized = changes | SIZED | {"spec.engine.kvCacheMemory": "20Gi"}
    planned = plan(None, sized)
    assert planned.tiers.gpu is not None
    blocks = int(planned.tiers.gpu.bytes_per_rank // planned.geometry.block_bytes * times)
    said = EngineTokens({Tier.GPU: planned.tiers.gpu.held_tokens // 2}, gpu_blocks=blocks)
    corrected = plan(said, changes | {"spec.engine.kvCacheMemory": memory})
    assert corrected.tiers.gpu is not None
    assert corrected.tiers.gpu.observed_tokens is not None
    entries = corrected.router.entries.get(Tier.GPU)
    assert entries == pytest.approx(
        planned.tiers.gpu.tokens * times / planned.router.tokens_per_entry, rel=0.01
    )
    again = plan(
        EngineTokens({Tier.GPU: corrected.tiers.gpu.observed_tokens}),
        changes | {"spec.engine.kvCacheMemory": memory},
    )
    assert again.router == corrected.router, "as an operator reads it in the status"


@pytest.mark.parametrize(
    "said", [EngineTokens(gpu_blocks=1 << 50), EngineTokens(gpu_blocks=1 << 24, block=1 << 16)]
)
def test_blocks_that_no_device_has_are_not_taken(said: EngineTokens) -> None:
    changes: dict[str, object] = {"spec.model.name": "google/gemma-3-27b-it"}
    assert plan(said, changes).tiers.gpu is None


@pytest.mark.parametrize(
    ("said", "taken"),
    [(None, 16), (16, 16), (32, 32), (784, 784), (8, 16), (0, 16), (-16, 16), (1 << 17, 16)],
)
def test_the_picker_follows_the_engine_s_block(said: int | None, taken: int) -> None:
    builtin: dict[str, object] = {"spec.router.flavor": "builtin"}
    corrected = plan(EngineTokens(block=said), builtin)
    assert corrected.router.tokens_per_entry == taken
    assert f"blockSizeTokens: {taken}\n" in corrected.router.config
    assert corrected.router.entries.get(Tier.CPU) == -(-409_600 // taken)
    assert corrected.engine == plan(None, builtin).engine, "its own pod stays as it is"


def test_a_block_much_smaller_than_planned_is_not_taken() -> None:
    sparse: dict[str, object] = {"spec.model.name": "deepseek-ai/DeepSeek-V3", "spec.engine.blockSize": 128}
    assert plan(EngineTokens(block=32), sparse).tiers.observed_block_tokens == 32
    assert plan(EngineTokens(block=16), sparse).tiers.observed_block_tokens is None


def test_a_tier_that_is_not_wanted_stays_away() -> None:
    assert plan(EngineTokens({Tier.CPU: 1, Tier.GPU: 1, Tier.DISK: 1}), {}).tiers.disk is None


def test_a_disk_tier_is_corrected_too() -> None:
    weighed = {"spec.tiers.disk": DISK, "spec.router.weights.diskPrefix": 1}
    planned = plan(None, weighed)
    assert planned.tiers.disk is not None
    # 65,534 chunks of 64 tokens, each an entry
    assert (planned.tiers.disk.tokens, planned.router.entries.get(Tier.DISK)) == (4_194_176, 65_534)
    corrected = plan(EngineTokens({Tier.DISK: 2_097_152}), weighed)
    assert corrected.tiers.disk is not None
    assert corrected.tiers.disk.observed_tokens == 2_097_152
    assert corrected.router.entries.get(Tier.DISK) == 32_768
    assert corrected.engine == planned.engine


def test_the_engine_s_pod_stays_as_it_is() -> None:
    seen = EngineTokens({Tier.GPU: PLANNED // 2, Tier.CPU: 204_800})
    before, after = plan(None, SIZED), plan(seen, SIZED)
    assert replace(after, router=before.router, tiers=before.tiers, checks=before.checks) == before
    engines = [
        [each for each in build_objects(one) if each["metadata"]["name"].endswith("-engine")]
        for one in (before, after)
    ]
    assert engines[0] == engines[1] != []
