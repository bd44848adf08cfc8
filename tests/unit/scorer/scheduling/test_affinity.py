"""Pods that hold most of a prompt come first, until they have too much to do."""

import numpy as np
import pytest

from kvtier_common.tier import Tier
from kvtier_scorer.config.model import PREFIX_SCORERS, QUEUE
from kvtier_scorer.config.settings import Affinity
from kvtier_scorer.scheduling.scoring import preferred_pods
from kvtier_scorer.scorers.columns import Columns

GPU_AND_CPU = {QUEUE, PREFIX_SCORERS[Tier.GPU], PREFIX_SCORERS[Tier.CPU]}


def columns(
    gpu: list[int], cpu: list[int], depths: list[int], picked: list[int], stale: list[bool] | None
) -> Columns:
    nothing = [0] * len(gpu)
    return Columns(
        queue_depth=np.array(depths, np.int64),
        picked=np.array(picked, np.int64),
        kv_cache_utilization=np.zeros(len(gpu)),
        stale=None if stale is None else np.array(stale),
        matched_blocks=np.array([gpu, cpu, nothing], np.int32),
        total_blocks=10,
        full_queue=5,
    )


@pytest.mark.parametrize(
    ("gpu", "cpu", "depths", "picked", "stale", "expected"),
    [
        ([10, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0], None, [True, False, False]),
        ([0, 0, 0], [0, 9, 0], [4, 4, 4], [0, 0, 0], None, [False, True, False]),
        ([4, 0, 0], [4, 0, 0], [0, 0, 0], [0, 0, 0], None, None),
        ([5, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0], None, [True, False, False]),
        ([10, 8, 7], [0, 0, 0], [0, 0, 0], [0, 0, 0], None, [True, True, False]),
        ([10, 0, 0], [0, 0, 0], [4, 0, 0], [0, 0, 0], None, [True, False, False]),
        ([10, 0, 0], [0, 0, 0], [5, 0, 0], [0, 0, 0], None, None),
        ([10, 0, 0], [0, 0, 0], [3, 0, 0], [2, 0, 0], None, None),
        ([10, 0, 0], [0, 0, 0], [9, 5, 7], [0, 0, 0], None, [True, False, False]),
        ([10, 10, 0], [0, 0, 0], [5, 0, 0], [0, 0, 0], None, [False, True, False]),
        ([10, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0], [True, False, False], None),
    ],
    ids=[
        "on the device", "in CPU memory", "too little", "just enough", "nearly as much",
        "a little more to do", "too much to do", "too much sent", "all are full", "another has it too",
        "stale",
    ],
)  # fmt: skip
def test_who_comes_first(  # noqa: PLR0913, PLR0917 - a table
    gpu: list[int],
    cpu: list[int],
    depths: list[int],
    picked: list[int],
    stale: list[bool] | None,
    expected: list[bool] | None,
) -> None:
    found = preferred_pods(Affinity(), columns(gpu, cpu, depths, picked, stale), GPU_AND_CPU)
    assert (None if found is None else found.tolist()) == expected


def test_a_tier_without_a_scorer_does_not_count() -> None:
    given = columns([0, 0], [10, 0], [0, 0], [0, 0], None)
    assert preferred_pods(Affinity(), given, {PREFIX_SCORERS[Tier.GPU]}) is None
    assert preferred_pods(Affinity(), given, {QUEUE}) is None


def test_it_can_be_left_out() -> None:
    given = columns([10, 0], [0, 0], [0, 0], [0, 0], None)
    assert preferred_pods(Affinity(enabled=False), given, GPU_AND_CPU) is None
