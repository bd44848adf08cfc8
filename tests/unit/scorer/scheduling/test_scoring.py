"""Which pods are preferred, which are saturated, and what stale readings score."""

import numpy as np
import pytest
from tests.unit.scorer.scheduling.pool import Pool, address, request, settings

from kvtier_common.tier import Tier
from kvtier_scorer.config.model import PREFIX_SCORERS, QUEUE
from kvtier_scorer.config.settings import Affinity, Shed, Shedding
from kvtier_scorer.errors import SaturatedError
from kvtier_scorer.scheduling.scoring import fresh_readings, preferred_pods, saturated_pods, stale_pods
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


@pytest.mark.parametrize(
    ("depth", "used", "expected"),
    [(0, 0.0, False), (4, 0.79, False), (5, 0.0, True), (0, 0.8, True), (50, 1.0, True)],
)
def test_a_pod_is_saturated_from_either_threshold_on(depth: int, used: float, expected: bool) -> None:
    fresh_readings = np.array([True])
    assert saturated_pods(Shedding(), np.array([depth]), np.array([used]), fresh_readings).tolist() == [
        expected
    ]


def full(pods: int, shed: Shed = Shed.SHEDDABLE) -> Pool:
    pool = Pool(pods, settings(shedding=Shedding(shed=shed)))
    for pod in range(pods):
        pool.read(pod, queue_depth=5)
    return pool


@pytest.mark.parametrize(
    ("shed", "priority", "refused"),
    [
        (Shed.SHEDDABLE, -1, True),
        (Shed.SHEDDABLE, 0, False),
        (Shed.ALL, -1, True),
        (Shed.ALL, 0, True),
        (Shed.ALL, 9, True),
        (Shed.NEVER, -1, False),
    ],
)
def test_who_is_refused_while_every_pod_is_saturated(shed: Shed, priority: int, refused: bool) -> None:
    scheduler = full(2, shed).scheduler
    explained = scheduler.explain(request(1, priority=priority), 0.0)
    if refused:
        with pytest.raises(
            SaturatedError, match="all 2 pods are saturated: 5 or more requests wait"
        ) as caught:
            scheduler.pick(request(1, priority=priority), 0.0)
        assert explained.refused == str(caught.value)
    else:
        assert scheduler.pick(request(1, priority=priority), 0.0).score > 0
        assert explained.refused is None


def test_one_pod_with_room_is_enough() -> None:
    pool = full(3)
    pool.read(1, queue_depth=4, used=0.5)
    assert pool.picks(request(1, priority=-1)) == {"pod-1"}


def test_only_the_candidates_count() -> None:
    pool = full(2)
    pool.read(1)
    with pytest.raises(SaturatedError, match="the one pod is"):
        pool.scheduler.pick(request(1, subset={address(0)}, priority=-1), 0.0)


def test_a_pod_that_stopped_answering_has_no_room() -> None:
    pool = full(2)
    pool.read(0, queue_depth=0, at_s=0.0)
    pool.read(1, queue_depth=5, at_s=10.0)
    with pytest.raises(SaturatedError):
        pool.scheduler.pick(request(1, priority=-1), 10.0)


def test_a_picker_that_reads_no_metrics_sheds_nothing() -> None:
    assert full(2, Shed.ALL).scheduler.pick(request(1, priority=-1), 1000.0).score > 0


def test_pods_are_stale_from_their_first_moment_until_a_reading_and_again_after_it_aged() -> None:
    pool = Pool(3)
    staleness_s = pool.settings.metrics.staleness_s
    assert stale_pods(pool.settings, pool.table, 0.0) == 3
    pool.read(0, at_s=10.0)
    pool.read(1, at_s=10.0 + staleness_s / 2)
    assert stale_pods(pool.settings, pool.table, 10.0) == 1
    # at that age it still counts
    assert stale_pods(pool.settings, pool.table, 10.0 + staleness_s) == 1
    assert stale_pods(pool.settings, pool.table, 10.0 + 1.1 * staleness_s) == 2
    assert stale_pods(pool.settings, pool.table, 10.0 + 9 * staleness_s) == 3
    pool.table.drop(address(2))
    assert stale_pods(pool.settings, pool.table, 10.0) == 0


def test_no_pods_are_not_stale() -> None:
    pool = Pool(0)
    assert stale_pods(pool.settings, pool.table, 0.0) == 0


def test_fresh_is_said_of_the_pods_asked_for_in_their_order() -> None:
    pool = Pool(4)
    pool.read(1)
    pool.read(3)
    numbers = pool.table.candidates([address(1), address(2), address(3)])
    assert fresh_readings(pool.settings, pool.table, numbers, 0.0).tolist() == [True, False, True]
