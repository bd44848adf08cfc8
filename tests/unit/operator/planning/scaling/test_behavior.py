"""How fast engines come and go."""

import pytest

from kvtier_operator.api.spec.engine import Autoscaling, ScalingTarget
from kvtier_operator.planning.scaling.behavior import scaling_behavior


@pytest.mark.parametrize("target", ScalingTarget)
@pytest.mark.parametrize("seconds", [0, 90, 100_000])
def test_what_kubernetes_takes(target: ScalingTarget, seconds: int) -> None:
    found = scaling_behavior(Autoscaling(max_replicas=4, target=target), start_s=seconds, grace_s=seconds)
    for way in ("scaleUp", "scaleDown"):
        assert 0 <= found[way]["stabilizationWindowSeconds"] <= 3600
        assert all(0 < each["periodSeconds"] <= 1800 for each in found[way]["policies"])


def test_engines_go_one_at_a_time_when_the_one_before_has_drained() -> None:
    wanted = Autoscaling(max_replicas=4, scale_down_stabilization_seconds=900)
    found = scaling_behavior(wanted, start_s=60, grace_s=620)["scaleDown"]
    assert found["stabilizationWindowSeconds"] == 900
    assert found["policies"] == [{"type": "Pods", "value": 1, "periodSeconds": 620}]


def test_by_hits_they_come_one_at_a_time() -> None:
    wanted = Autoscaling(max_replicas=4, target=ScalingTarget.HIT_RATE)
    found = scaling_behavior(wanted, start_s=300, grace_s=60)["scaleUp"]
    assert found["policies"] == [{"type": "Pods", "value": 1, "periodSeconds": 900}]
