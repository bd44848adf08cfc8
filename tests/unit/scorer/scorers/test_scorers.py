"""Vectors worked out by hand from the formulas that other pickers publish.

gateway-api-inference-extension v1.5.0 and llm-d-router v0.9.0, pkg/epp/framework/plugins/scheduling/scorer/:
queuedepth/queue.go, (max - depth) / (max - min) and 1.0 where all are equal; kvcacheutilization/
kvcache_utilization.go, 1 - usage; prefix/plugin.go, matched blocks / total blocks and 0 without blocks.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_common.tier import OF_A_POD, Tier
from kvtier_scorer.config.model import KV_CACHE_UTILIZATION, PREFIX_SCORERS, QUEUE, SCORER_NAMES
from kvtier_scorer.scorers import SCORERS
from kvtier_scorer.scorers.columns import Columns

PREFIX = {
    PREFIX_SCORERS[Tier.GPU]: Tier.GPU,
    PREFIX_SCORERS[Tier.CPU]: Tier.CPU,
    PREFIX_SCORERS[Tier.DISK]: Tier.DISK,
}


def columns(
    queue_depth: list[int],
    *,
    picked: list[int] | None = None,
    used: list[float] | None = None,
    stale: list[bool] | None = None,
) -> Columns:
    pods = len(queue_depth)
    return Columns(
        queue_depth=np.array(queue_depth, np.int64),
        picked=np.array(picked or [0] * pods, np.int64),
        kv_cache_utilization=np.array(used or [0.0] * pods, np.float64),
        stale=None if stale is None else np.array(stale),
        matched_blocks=np.zeros((len(OF_A_POD), pods), np.int32),
        total_blocks=0,
        full_queue=5,
    )


def scores(kind: str, given_columns: Columns) -> list[float]:
    return [float(score) for score in SCORERS[kind](given_columns)]


def test_every_scorer_is_registered() -> None:
    assert tuple(SCORERS) == SCORER_NAMES


@pytest.mark.parametrize(
    ("depths", "expected"),
    [
        ([0], [1.0]),
        ([7], [1.0]),
        ([3, 3, 3], [1.0, 1.0, 1.0]),
        ([0, 1], [1.0, 0.0]),
        ([10, 5, 0], [0.0, 0.5, 1.0]),
        ([2, 4, 10], [1.0, 0.75, 0.0]),
        ([100, 101, 104, 108], [1.0, 0.875, 0.5, 0.0]),
    ],
)
def test_queue(depths: list[int], expected: list[float]) -> None:
    assert scores(QUEUE, columns(depths)) == expected


@pytest.mark.parametrize(
    ("used", "expected"),
    [([0.0, 0.25, 1.0], [1.0, 0.75, 0.0]), ([0.8], [1 - 0.8]), ([1.5], [0.0])],
)
def test_kv_cache_utilization(used: list[float], expected: list[float]) -> None:
    assert scores(KV_CACHE_UTILIZATION, columns([0] * len(used), used=used)) == expected


@pytest.mark.parametrize(("kind", "tier"), PREFIX.items())
def test_prefix_scorers_count_the_blocks_of_their_own_tier(kind: str, tier: Tier) -> None:
    matched = np.full((len(OF_A_POD), 4), 7, np.int32)
    matched[tier] = [0, 2, 4, 8]
    seen = replace(columns([0] * 4), matched_blocks=matched, total_blocks=8)
    assert scores(kind, seen) == [0.0, 0.25, 0.5, 1.0]


@pytest.mark.parametrize("kind", PREFIX)
def test_a_prompt_shorter_than_a_block_scores_nothing(kind: str) -> None:
    assert scores(kind, columns([0, 0])) == [0.0, 0.0]


@pytest.mark.parametrize(
    ("depths", "picked", "expected"),
    [
        # five is a full queue: each request sent since the reading takes a fifth
        ([0, 0], [0, 1], [1.0, 0.8]),
        ([0, 0], [0, 5], [1.0, 0.0]),
        ([0, 0], [0, 9], [1.0, 0.0]),
        # sent to all alike, they tell nothing
        ([0, 0], [3, 3], [1.0, 1.0]),
        ([0, 10], [4, 4], [1.0, 0.0]),
        # longer queues than a full one: a request weighs what it weighs in their spread
        ([0, 10], [1, 0], [0.9, 0.0]),
    ],
)
def test_queue_counts_what_was_sent_since(
    depths: list[int], picked: list[int], expected: list[float]
) -> None:
    assert scores(QUEUE, columns(depths, picked=picked)) == pytest.approx(expected)


def test_a_pod_that_says_nothing_scores_as_the_fullest_and_changes_no_other() -> None:
    told = columns([2, 4, 10], used=[0.5, 0.5, 0.5])
    stale = columns([2, 4, 10, 0], used=[0.5, 0.5, 0.5, 0.0], stale=[False, False, False, True])
    for kind in (QUEUE, KV_CACHE_UTILIZATION):
        assert scores(kind, stale) == [*scores(kind, told), 0.0]


PODS = st.integers(1, 20).flatmap(
    lambda pods: st.tuples(
        st.lists(st.integers(0, 10**9), min_size=pods, max_size=pods),
        st.lists(st.integers(0, 10**6), min_size=pods, max_size=pods),
        st.lists(st.floats(0, 2), min_size=pods, max_size=pods),
        st.lists(st.booleans(), min_size=pods, max_size=pods),
    )
)


@given(pods=PODS, kind=st.sampled_from(SCORER_NAMES))
def test_scores_are_between_0_and_1(
    pods: tuple[list[int], list[int], list[float], list[bool]], kind: str
) -> None:
    depths, picked, used, stale = pods
    given_scores = scores(kind, columns(depths, picked=picked, used=used, stale=stale))
    assert len(given_scores) == len(depths)
    assert all(0.0 <= score <= 1.0 for score in given_scores)


@given(pods=PODS)
def test_one_more_request_never_makes_a_pod_score_better(
    pods: tuple[list[int], list[int], list[float], list[bool]],
) -> None:
    depths, picked, _, _ = pods
    before = columns(depths, picked=picked)
    after = columns(depths, picked=[picked[0] + 1, *picked[1:]])
    assert scores(QUEUE, after)[0] <= scores(QUEUE, before)[0]
