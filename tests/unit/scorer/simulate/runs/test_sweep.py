from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.scorer.simulate.pools import pool

from kvtier_common.tier import Tier
from kvtier_scorer.config.model import ScorerWeights
from kvtier_scorer.simulate.engine.policy import DEFAULT_WEIGHTS, weights_in_order
from kvtier_scorer.simulate.report.table import sweep_lines
from kvtier_scorer.simulate.runs.bootstrap import paired
from kvtier_scorer.simulate.runs.sweep import Objective, SweepResult, candidate_weights, rungs, runs, sweep
from kvtier_scorer.simulate.traces.generated import Workload, generate
from kvtier_scorer.simulate.traces.trace import Trace

WORKLOAD = Workload(
    groups=8, prompts_per_group=5, system_tokens=320, question_tokens=32, output_tokens=30, concurrency=8
)
BY_UTILIZATION = weights_in_order(0, 1, 0, 0, 0)


def replicate(number: int) -> Trace:
    return generate("t", WORKLOAD, seed=number)


def small_sweep(candidates: list[ScorerWeights], seed: int = 0) -> SweepResult:
    where = pool(3, gpu=60, cpu=80)
    return sweep(replicate, where, Objective.MISSES, candidates, replicates=3, seed=seed)


def test_the_interval_is_the_middle_of_the_means_of_resamples() -> None:
    rng = np.random.default_rng(5)
    second = rng.normal(10, 1, 200)
    first = second - rng.normal(0.5, 2, 200)
    found = paired(first, second, seed=1)
    assert found.mean == pytest.approx(float((second - first).mean()))
    # of so many pairs, what the normal distribution says
    half = 1.96 * float((second - first).std()) / np.sqrt(200)
    assert found.low == pytest.approx(found.mean - half, abs=0.05)
    assert found.high == pytest.approx(found.mean + half, abs=0.05)
    assert found.won == float((second > first).mean())


def test_of_pairs_without_a_difference_the_interval_is_a_point() -> None:
    same = np.array([1.0, 2.0, 3.0])
    assert asdict(paired(same, same, seed=0)) == {"mean": 0, "low": 0, "high": 0, "won": 0}
    constant = paired(same - 0.5, same, seed=0)
    assert (constant.low, constant.high, constant.won) == (0.5, 0.5, 1)


def test_it_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(7)
    covered = 0
    for seed in range(200):
        second = rng.normal(0, 1, 30)
        found = paired(second - rng.normal(0.3, 1, 30), second, seed)
        covered += found.low <= 0.3 <= found.high
    # 95 %, a little less for 30 pairs
    assert 0.88 <= covered / 200 <= 0.99


def test_the_same_seed_draws_the_same() -> None:
    first, second = np.array([1.0, 2.0, 5.0]), np.array([2.0, 2.5, 4.0])
    assert paired(first, second, 3) == paired(first, second, 3)


@given(st.integers(2, 60), st.sets(st.sampled_from([Tier.CPU, Tier.DISK])), st.integers(0, 5))
def test_candidates_are_all_different_and_begin_with_the_default(
    count: int, tiers: set[Tier], seed: int
) -> None:
    found = candidate_weights(count, tiers, seed=seed)
    assert found[0] == DEFAULT_WEIGHTS
    assert len(found) == count
    directions = {tuple(np.array(list(each.values())) / sum(each.values())) for each in found}
    assert len(directions) == count
    for each in found[1:]:
        assert Tier.CPU in tiers or not each["cpu_prefix"]
        assert Tier.DISK in tiers or not each["disk_prefix"]
    assert found == candidate_weights(count, tiers, seed=seed)


def test_more_candidates_than_there_are_end_the_search() -> None:
    assert 200 < len(candidate_weights(10_000, set(), seed=0)) < 400


@pytest.mark.parametrize(
    ("candidates", "replicates", "expected"),
    [
        (32, 8, [(32, 1), (16, 2), (8, 4), (4, 8)]),
        (4, 8, [(4, 1), (2, 2), (1, 4)]),
        (3, 2, [(3, 1), (2, 2)]),
        (5, 3, [(5, 1), (3, 2), (2, 3)]),
    ],
)
def test_halving(candidates: int, replicates: int, expected: list[tuple[int, int]]) -> None:
    assert rungs(candidates, replicates) == expected


@given(st.integers(2, 6), st.integers(2, 4))
def test_as_many_runs_are_reported_as_were_announced(candidates: int, replicates: int) -> None:
    done = []
    sweep(
        lambda number: generate("t", Workload(groups=2, prompts_per_group=2, system_tokens=32,
                                              question_tokens=8, output_tokens=2, concurrency=2), number),
        pool(2), Objective.TTFT_MEAN, candidate_weights(candidates, {Tier.CPU}, seed=1),
        replicates=replicates, seed=0, report=lambda: done.append(1),
    )  # fmt: skip
    assert len(done) == runs(candidates, replicates)


def test_it_finds_weights_that_are_better_and_is_sure() -> None:
    by_prefix = weights_in_order(1, 0, 3, 3, 0)
    result = small_sweep([BY_UTILIZATION, by_prefix])
    assert result.best == by_prefix
    # against 2:2:1:1 the gain is that of fresh replicates
    assert result.gain.mean == pytest.approx(result.default_value - result.value)
    assert result.sure == (result.gain.low > 0)
    found = result.to_json()
    assert found["sure"] is result.sure
    assert " ".join(found) == "objective candidates best value default_value gain replicates sure"
    assert " ".join(found["gain"]) == "mean low high won"


def test_the_same_sweep_finds_the_same() -> None:
    candidates = candidate_weights(4, {Tier.CPU}, seed=2)
    assert small_sweep(candidates) == small_sweep(candidates)


def test_the_comparison_is_on_replicates_that_were_not_searched() -> None:
    seen: list[int] = []

    def noted(number: int) -> Trace:
        seen.append(number)
        return replicate(number)

    sweep(
        noted,
        pool(2, gpu=60),
        Objective.MISSES,
        candidate_weights(4, {Tier.CPU}, seed=0),
        replicates=2,
        seed=0,
    )
    searched, compared = seen[:-4], seen[-4:]
    assert set(searched) <= {0, 1}
    assert sorted(compared) == [2, 2, 3, 3]


def _result(best: ScorerWeights, low: float, high: float) -> SweepResult:
    from kvtier_scorer.simulate.runs.bootstrap import Interval  # noqa: PLC0415

    return SweepResult(Objective.TTFT_MEAN, 8, best, 3.0, 4.0, Interval(1.0, low, high, 0.75), 8)


def test_it_says_how_sure_it_is() -> None:
    best = weights_in_order(1, 1, 2, 1, 0)
    assert sweep_lines(_result(best, 0.5, 1.5)) == [
        "best of 8 weights for ttft-mean: 1:1:2:1:0",
        "ttft-mean 3, with 2:2:1:1 4, on 8 replicates that were not searched",
        "better than 2:2:1:1: the 95 % interval of the gain is 0.5 to 1.5; it won 75% of them",
    ]
    assert sweep_lines(_result(best, -0.5, 1.5))[2] == (
        "not surely better than 2:2:1:1: the 95 % interval of the gain is -0.5 to 1.5; keep 2:2:1:1 "
        "or give more --replicates; it won 75% of them"
    )
    assert sweep_lines(_result(DEFAULT_WEIGHTS, 0, 0))[1:] == [
        "nothing beat the default; ttft-mean 3 on average"
    ]
