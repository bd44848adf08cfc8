from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.unit.scorer.simulate.pools import asked, loads_of, picker, pool, situation, trace

from kvtier_common.benchmarks import HIGH_CACHE, Workload
from kvtier_common.tier import Tier
from kvtier_scorer.config.flavors import picker_config
from kvtier_scorer.config.model import PickerInput, TierTokens
from kvtier_scorer.simulate.compare import compare
from kvtier_scorer.simulate.policies import POLICIES, ROUND_ROBIN
from kvtier_scorer.simulate.policy import DEFAULT_WEIGHTS, Loads
from kvtier_scorer.simulate.settings import QWEN3_32B_2X_H100, PodSettings, PoolSettings
from kvtier_scorer.simulate.trace import generate
from kvtier_scorer.simulate.upstream_pickers import ApproximateIndex, queue_scores

OTHERS = [name for name in POLICIES if name.startswith(("gaie", "llm-d"))]
GUIDE = PoolSettings(pods=8, pod=QWEN3_32B_2X_H100)
SMALL = Workload(
    groups=6, prompts_per_group=6, system_tokens=200, question_tokens=20, output_tokens=20, concurrency=9
)
TIERS = TierTokens({Tier.GPU: 9_271 * 16, Tier.CPU: 409_600})


def array(*blocks: int) -> NDArray[np.int32]:
    return np.array(blocks, np.int32)


@pytest.mark.parametrize(
    ("name", "scorers"),
    [
        # weight, tokens of an entry, entries a pod, entries of a prompt, whether its rest is one
        ("gaie-1.4", [(1, 16, 9_271, 256, False), (1, 16, 41_000, 256, False)]),
        ("gaie-1.4-sized", [(1, 16, 9_271, 1_891, False), (1, 16, 25_600, 1_891, False)]),
        ("gaie-1.5", [(2, 16, 31_250, 256, False)]),
        ("gaie-1.5-sized", [(2, 14, 31_250, 2_161, False)]),
        ("llm-d-0.10", [(1, 64, 9_271, 2_048, True), (1, 64, 82_000, 2_048, True)]),
        ("llm-d-0.10-sized", [(1, 64, 2_318, 2_048, True), (1, 64, 6_400, 2_048, True)]),
    ],
)
def test_others_have_their_own_entries(name: str, scorers: list[tuple[object, ...]]) -> None:
    built = picker(name, generate("high-cache", HIGH_CACHE, 0), GUIDE)
    found = [
        (each.weight, each.block_tokens, each.entries, each.most_blocks, each.with_rest)
        for each, _, _ in built._scorers
    ]
    assert found == scorers


@pytest.mark.parametrize("name", ["gaie-1.4-sized", "gaie-1.5-sized", "llm-d-0.10-sized"])
def test_sized_others_have_what_the_operator_writes(name: str) -> None:
    version = name.split("-")[-2]
    flavor = name.removesuffix(f"-{version}-sized")
    written = picker_config(flavor, PickerInput(DEFAULT_WEIGHTS, TIERS, 16, version=version))
    built = picker(name, generate("high-cache", HIGH_CACHE, 0), GUIDE)
    entries = [each.entries for each, _, _ in built._scorers]
    assert {each.block_tokens for each, _, _ in built._scorers} == {written.tokens_per_entry}
    assert entries == list(written.entries.values())


def test_the_guides_capacities_grow_with_the_tier_and_go_with_it() -> None:
    found = generate("high-cache", HIGH_CACHE, 0)
    double = PoolSettings(pods=8, pod=_with_cpu_blocks(51_200))
    assert [each.entries for each, _, _ in picker("gaie-1.4", found, double)._scorers] == [9_271, 82_000]
    assert [each.entries for each, _, _ in picker("llm-d-0.10", found, double)._scorers] == [9_271, 164_000]
    none = PoolSettings(pods=8, pod=_with_cpu_blocks(0))
    assert [each.entries for each, _, _ in picker("gaie-1.4", found, none)._scorers] == [9_271]
    assert [each.entries for each, _, _ in picker("gaie-1.5", found, double)._scorers] == [31_250]


def _with_cpu_blocks(blocks: int) -> PodSettings:
    return replace(QWEN3_32B_2X_H100, blocks={**QWEN3_32B_2X_H100.blocks, Tier.CPU: blocks})


def test_their_index_evicts_the_root_first() -> None:
    index = ApproximateIndex(2, entries=4, named=6)
    index.add(1, array(0, 1, 2))
    assert index.match(array(0, 1, 2)).tolist() == [0, 3]
    index.add(1, array(3, 4))
    assert index.match(array(1, 2)).tolist() == [0, 2]
    assert index.match(array(0, 1, 2)).tolist() == [0, 0]


def test_their_walk_counts_behind_a_gap_that_another_pod_fills() -> None:
    index = ApproximateIndex(2, entries=4, named=6)
    index.add(0, array(0, 2))
    index.add(1, array(0, 1))
    assert index.match(array(0, 1, 2)).tolist() == [2, 2]
    assert index.match(array(0, 3, 2)).tolist() == [1, 1]


def test_their_index_lists_all_of_a_prompt_that_is_longer_than_it() -> None:
    index = ApproximateIndex(1, entries=2, named=6)
    index.add(0, array(0, 1, 2))
    assert index.match(array(0, 1, 2)).tolist() == [3]
    # what was evicted at once is listed until it is evicted once more, which it never is
    index.add(0, array(3, 4))
    assert index.match(array(0)).tolist() == [1]
    assert index.match(array(1)).tolist() == [0]


def test_a_block_that_comes_once_ends_their_walk() -> None:
    index = ApproximateIndex(1, entries=4, named=6)
    index.add(0, array(0, -1, 2))
    assert index.match(array(0, -1, 2)).tolist() == [1]


@pytest.mark.parametrize(
    ("name", "alike"),
    [("gaie-1.4", True), ("gaie-1.5", True), ("gaie-1.4-sized", False), ("llm-d-0.10", False)],
)
def test_the_extension_sees_only_4096_tokens_unless_told_otherwise(name: str, alike: bool) -> None:
    """Prompts that differ behind that are one to it, and it follows the first that came."""
    requests = [
        asked(("start", 4_096), (f"rest-{number}", 4_096), at_s=at_s)
        for at_s, number in enumerate((0, 1, 0, 1))
    ]
    built = picker(name, trace(*requests), pool(4, gpu=2_000, cpu=4_000, kv_bytes_per_token=262_144))
    loads = Loads(4, 0.1)
    built.pick(0, loads, 0.0)
    scores = []
    for scorer, blocks, index in built._scorers:
        prompt = blocks.of(1, scorer.most_blocks, with_rest=scorer.with_rest)
        scores.append(index.match(prompt).max() / len(prompt))
    assert (min(scores) == 1.0) == alike


def test_llm_d_counts_the_last_part_of_a_prompt() -> None:
    found = trace(*(asked(("a", 100), at_s=number) for number in range(2)))
    for name, matched in (("llm-d-0.10-sized", 2), ("gaie-1.4-sized", 6)):
        built = picker(name, found, pool(1))
        built.pick(0, Loads(1, 0.1), 0.0)
        scorer, blocks, index = built._scorers[0]
        prompt = blocks.of(1, scorer.most_blocks, with_rest=scorer.with_rest)
        assert index.match(prompt).tolist() == [len(prompt)] == [matched]


@pytest.mark.parametrize(
    ("depths", "scores"),
    [([0, 0], [1, 1]), ([4, 4], [1, 1]), ([0, 1], [1, 0]), ([2, 4, 6], [1, 0.5, 0]), ([5], [1])],
)
def test_queue_scores_are_theirs(depths: list[int], scores: list[float]) -> None:
    assert queue_scores(np.array(depths, np.int64)).tolist() == scores


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize(
    ("depths", "used", "chosen"),
    [
        # 2 of the queue, 2 of the utilization, 2 of the prefix, which the pod of number 0 holds
        ([0, 0, 0], [0.0, 0.0, 0.0], 0),
        ([1, 0, 1], [0.0, 0.1, 0.0], 0),
        ([1, 0, 1], [0.1, 0.0, 0.1], 1),
        ([0, 0, 0], [0.9, 0.0, 0.5], 0),
        ([9, 0, 9], [0.9, 0.0, 0.9], 1),
    ],
)
def test_others_weigh_2_2_1_1(name: str, depths: list[int], used: list[float], chosen: int) -> None:
    found = trace(*(asked(("a", 6_400), at_s=number) for number in range(3)))
    built = picker(name, found, pool(3, gpu=1_000, cpu=2_000, kv_bytes_per_token=262_144))
    # whoever it is that holds the prompt
    holder = built.pick(0, Loads(3, 0.1), 0.0)
    places = [holder, *(number for number in range(3) if number != holder)]
    by_pod = [places.index(number) for number in range(3)]
    loads = loads_of([depths[at] for at in by_pod], [0] * 3, [used[at] for at in by_pod])
    assert built.pick(1, loads, 0.1) == places[chosen]


@pytest.mark.parametrize("name", OTHERS)
def test_others_send_a_burst_to_the_pod_that_was_free_when_last_read(name: str) -> None:
    requests = [asked((f"prompt-{number}", 160), at_s=0.1) for number in range(30)]
    built = picker(name, trace(*requests), pool(3))
    loads = loads_of([1, 0, 1], [0] * 3, [0.0] * 3)
    assert {built.pick(request, loads, 0.1) for request in range(30)} == {1}


@pytest.mark.parametrize("name", sorted(set(POLICIES) - {ROUND_ROBIN}))
def test_equally_good_pods_have_the_same_chance(name: str) -> None:
    found = trace(*(asked((f"prompt-{number}", 20), at_s=0) for number in range(3)))
    picks = Counter(
        POLICIES[name].build(situation(found, pool(3), seed=seed)).pick(0, Loads(3, 0.1), 0.0)
        for seed in range(300)
    )
    assert min(picks.get(number, 0) for number in range(3)) > 60


def test_round_robin_and_least_queue() -> None:
    found = trace(asked(("a", 20), at_s=0))
    turns = POLICIES[ROUND_ROBIN].build(situation(found, pool(3)))
    assert [turns.pick(0, Loads(3, 0.1), 0.0) for _ in range(4)] == [0, 1, 2, 0]
    least = POLICIES["least-queue"].build(situation(found, pool(4)))
    loads = loads_of([2, 1, 1, 1], [0, 3, 2, 3], [0.0] * 4)
    assert least.pick(0, loads, 0.1) == 2


@pytest.mark.parametrize("name", OTHERS)
def test_each_other_picker_says_which_release_it_is(name: str) -> None:
    kind = POLICIES[name]
    assert (
        "gateway-api-inference-extension v1." if name.startswith("gaie") else "llm-d-router v0.10.0"
    ) in kind.source
    assert not kind.weighted


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_the_same_seed_gives_the_same_figures_and_another_others(name: str) -> None:
    found = generate("t", SMALL, seed=3)

    def ttft_s(seed: int) -> list[float]:
        done: list[float] = compare([name], found, pool(3), seed=seed).figures[name].ttft_s.tolist()
        return done

    assert ttft_s(1) == ttft_s(1)
    if name != ROUND_ROBIN:
        assert any(ttft_s(seed) != ttft_s(1) for seed in range(2, 8))
