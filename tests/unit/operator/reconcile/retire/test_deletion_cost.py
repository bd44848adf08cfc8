"""What an engine's metrics make of its pod's deletion cost."""

import pytest

from kvtier_common.metrics.text import Families, MetricsText
from kvtier_operator.reconcile.retire import READ, deletion_cost, fill_percent


def families(**values: str) -> Families:
    """Gauges of the tiers, such as `cpu_cached="10"`, of two data-parallel engines with the same."""
    reading = MetricsText(READ)
    for name, value in values.items():
        for engine in (0, 1):
            text = f'vllm:kvtier_{name}_tokens{{engine="{engine}"}} {value}\n'
            reading.feed(text.encode())
    return reading.end()


@pytest.mark.parametrize(
    ("values", "percent"),
    [
        ({}, None),
        ({"cpu_capacity": "0", "cpu_cached": "0"}, None),
        ({"cpu_capacity": "1000", "cpu_cached": "0"}, 0),
        ({"cpu_capacity": "1000", "cpu_cached": "250"}, 25),
        ({"cpu_capacity": "1000", "cpu_cached": "2000"}, 100),
        ({"cpu_capacity": "1000", "cpu_cached": "1000", "disk_capacity": "9000", "disk_cached": "0"}, 10),
    ],
)
def test_fill(values: dict[str, str], percent: float | None) -> None:
    assert fill_percent(families(**values)) == percent


@pytest.mark.parametrize(
    ("fill", "before", "cost"),
    [
        (0, "", "0"),
        (26, "", "30"),
        (26, "20", "20"),
        (29.9, "20", "20"),
        (30, "20", "30"),
        (100, "20", "100"),
        (3, "100", "0"),
        (50, "somebody's", "50"),
        (50, "-2147483648", "50"),
    ],
)
def test_it_moves_by_steps(fill: float, before: str, cost: str) -> None:
    assert deletion_cost(fill, before) == cost
