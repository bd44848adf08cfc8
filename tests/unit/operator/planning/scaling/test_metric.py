"""What targets are in numbers."""

import pytest

from kvtier_operator.api.quantity import parse_quantity
from kvtier_operator.api.spec.engine import Autoscaling, ScalingTarget
from kvtier_operator.planning.scaling.metric import scaling_metric


@pytest.mark.parametrize(
    ("target", "value", "number", "quantity", "goal"),
    [
        ("queue", None, "5", "5", "5 waiting requests an engine"),
        ("queue", 1, "1", "1", "1 waiting request an engine"),
        ("kvCacheUtilization", None, "0.8", "800m", "80% of the device's cache in use"),
        ("kvCacheUtilization", 75, "0.75", "750m", "75% of the device's cache in use"),
        ("hitRate", None, "0.5", "500m", "50% of prompt tokens found in a tier"),
        ("hitRate", 99, "0.01", "10m", "99% of prompt tokens found in a tier"),
    ],
)
def test_values(target: str, value: int | None, number: str, quantity: str, goal: str) -> None:
    found = scaling_metric(Autoscaling(max_replicas=4, target=ScalingTarget(target), target_value=value))
    assert (found.threshold_number, found.threshold_quantity, found.goal) == (number, quantity, goal)
    assert float(parse_quantity(quantity)) == float(number)


def test_each_target_has_a_metric_of_its_own() -> None:
    names = {scaling_metric(Autoscaling(max_replicas=4, target=each)).pod_metric for each in ScalingTarget}
    assert len(names) == len(ScalingTarget)
