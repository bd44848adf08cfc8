"""The thresholds are those of gateway-api-inference-extension v1.5.0, saturationdetector/utilization."""

import numpy as np
import pytest
from tests.unit.scorer.scheduling.pool import Pool, address, request, settings

from kvtier_scorer.config.settings import Shed, Shedding
from kvtier_scorer.errors import SaturatedError
from kvtier_scorer.scheduling.scoring import saturated_pods


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
