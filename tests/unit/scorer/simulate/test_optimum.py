from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.scorer.simulate.pools import asked, pool, prompts, timed, trace

from kvtier_common.benchmarks import HIGH_CACHE, LOW_CACHE
from kvtier_scorer.simulate.blocks import blocks_of
from kvtier_scorer.simulate.compare import Figures, run_policy
from kvtier_scorer.simulate.optimum import most_hit_tokens, optimum_hit_rate, reuse_tokens
from kvtier_scorer.simulate.policies import KVTIER, POLICIES, ROUND_ROBIN
from kvtier_scorer.simulate.trace import generate

SMALL_SIZES = st.integers(22, 60)
"""Blocks; the longest prompt and its answer need 18."""


@settings(max_examples=60)
@given(
    prompts(), st.sampled_from(sorted(POLICIES)), st.integers(1, 3),
    SMALL_SIZES, st.sampled_from([0, 5, 40]), st.sampled_from([0, 10, 60]), st.sampled_from([0.0, 0.02, 0.3]),
)  # fmt: skip
def test_no_policy_finds_more_than_the_optimum(  # noqa: PLR0913, PLR0917 - what decides a run
    given_prompts: list[list[tuple[str, int]]],
    policy: str,
    pods: int,
    gpu: int,
    cpu: int,
    disk: int,
    gap_s: float,
) -> None:
    found, where = timed(given_prompts, gap_s), pool(pods, gpu=gpu, cpu=cpu, disk=disk)
    result = run_policy(policy, found, where)
    blocks = blocks_of(found, 16)
    capacity = pods * (gpu + cpu + disk)
    # for the very order in which this policy's requests started, not only for the best of several
    assert result.hit_tokens.sum() <= most_hit_tokens(blocks, result.started, capacity)
    assert result.hit_tokens.sum() <= reuse_tokens(blocks)
    rate = result.hit_tokens.sum() / found.prompt_tokens.sum()
    assert rate <= optimum_hit_rate(blocks, where, [result]) <= 1


@given(st.lists(st.integers(0, 4), min_size=1, max_size=9), st.integers(1, 4))
def test_it_is_what_the_best_of_all_ways_to_run_one_cache_finds(names: list[int], capacity: int) -> None:
    @cache
    def most(place: int, held: frozenset[int]) -> int:
        if place == len(names):
            return 0
        name = names[place]
        hit = int(name in held)
        with_it = held | {name}
        kept = [held, with_it] if len(with_it) <= capacity else [held]
        kept += [with_it - {other} for other in with_it if len(with_it) > capacity]
        return hit + max(most(place + 1, each) for each in kept)

    found = trace(*(asked((f"n{name}", 16), at_s=place) for place, name in enumerate(names)))
    blocks = blocks_of(found, 16)
    assert most_hit_tokens(blocks, range(len(names)), capacity) == 16 * most(0, frozenset())


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=12),
    st.lists(st.integers(1, 5), min_size=4, max_size=4),
    st.integers(1, 12),
)
def test_that_blocks_are_kept_in_nodes_changes_nothing(
    names: list[int], lengths: list[int], capacity: int
) -> None:
    whole = trace(*(asked((f"n{name}", 16 * lengths[name]), at_s=at_s) for at_s, name in enumerate(names)))
    single = trace(
        *(
            asked(*((f"n{name}-{number}", 16) for number in range(lengths[name])), at_s=at_s)
            for at_s, name in enumerate(names)
        )
    )
    order = range(len(names))
    assert most_hit_tokens(blocks_of(whole, 16), order, capacity) == most_hit_tokens(
        blocks_of(single, 16), order, capacity
    )


@given(prompts(), st.integers(1, 30))
def test_more_room_finds_no_less_and_all_room_finds_all_reuse(
    given_prompts: list[list[tuple[str, int]]], capacity: int
) -> None:
    blocks = blocks_of(timed(given_prompts), 16)
    order = range(len(given_prompts))
    less, more = (most_hit_tokens(blocks, order, capacity + extra) for extra in (0, 1))
    assert less <= more <= most_hit_tokens(blocks, order, 10_000) == reuse_tokens(blocks)


@pytest.mark.parametrize(("workload", "system"), [(HIGH_CACHE, 30_000), (LOW_CACHE, 8_000)])
def test_of_the_guides_workloads_it_is_every_prompt_but_the_first_of_its_group(
    workload: object, system: int
) -> None:
    found = generate("t", HIGH_CACHE if workload is HIGH_CACHE else LOW_CACHE, seed=0)
    blocks = blocks_of(found, 16)
    assert reuse_tokens(blocks) == 405 * system // 16 * 16


def test_one_pod_with_room_for_everything_reaches_it() -> None:
    found = timed([[("a", 40), (f"q{number}", 10)] for number in range(6)], gap_s=1.0)
    where = pool(1, gpu=100)
    results = [run_policy(name, found, where) for name in (ROUND_ROBIN, KVTIER)]
    rates = {Figures.of(result).hit_rate for result in results}
    assert rates == {optimum_hit_rate(blocks_of(found, 16), where, results)} == {5 * 32 / 300}
