"""A disk that the picker does not look at."""

from typing import Any

import pytest
from tests.cases.kvcachetier import DISK
from tests.cases.planning import resource

from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan

ON_EIGHT: dict[str, Any] = {"engine": {"gpu": "l4", "tensorParallelSize": 8}}


@pytest.mark.parametrize(
    ("model", "spec", "is_said"),
    [
        ("Qwen/Qwen3-32B", {"tiers": {"disk": DISK}, **ON_EIGHT}, True),
        (
            "Qwen/Qwen3-32B",
            {"tiers": {"disk": DISK}, **ON_EIGHT, "router": {"weights": {"diskPrefix": 1}}},
            False,
        ),
        ("Qwen/Qwen3-32B", ON_EIGHT, False),
        # where computing again is sooner the disk is better left out
        ("Qwen/Qwen3-0.6B", {"tiers": {"disk": DISK}, "engine": {"gpu": "h100"}}, False),
    ],
)
def test_is_said_where_it_may_pay(model: str, spec: dict[str, Any], is_said: bool) -> None:
    notes = make_plan(resource(model, **spec), Observed()).notes
    assert any("diskPrefix is 0" in note for note in notes) is is_said
