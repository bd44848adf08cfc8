"""The picker's requests and limits: kvtier's own, and what a resource puts over them."""

from typing import Any

import pytest
from tests.cases.planning import resource

from kvtier_operator.api.quantity import parse_quantity
from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan

# 409,600 tokens of the CPU tier / 64 = 6,400 entries, and 31,250 of a device's cache that is not known:
# x 8 engines x 512 B on top of 512 MiB, to 64 MiB
OWN = {"requests": {"cpu": "500m", "memory": "704Mi"}, "limits": {"memory": "1408Mi"}}


def found(given: dict[str, Any]) -> dict[str, dict[str, str]]:
    planned = make_plan(resource(router={"resources": given}), Observed()).router.resources
    return {"requests": dict(planned.requests), "limits": dict(planned.limits)}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, OWN),
        # a limit lowers the request that nobody made
        (
            {"limits": {"cpu": "500m"}},
            {"requests": OWN["requests"] | {"cpu": "500m"}, "limits": OWN["limits"] | {"cpu": "500m"}},
        ),
        ({"limits": {"cpu": 2}}, {"requests": OWN["requests"], "limits": OWN["limits"] | {"cpu": "2"}}),
        (
            {"requests": {"cpu": "100m"}},
            {"requests": OWN["requests"] | {"cpu": "100m"}, "limits": OWN["limits"]},
        ),
        (
            {"limits": {"memory": "512Mi"}},
            {"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"memory": "512Mi"}},
        ),
        # a request raises the limit that nobody set
        (
            {"requests": {"memory": "2Gi"}},
            {"requests": {"cpu": "500m", "memory": "2Gi"}, "limits": {"memory": "2Gi"}},
        ),
        (
            {"requests": {"memory": "1Gi"}, "limits": {"memory": "4Gi", "ephemeral-storage": "1Gi"}},
            {
                "requests": {"cpu": "500m", "memory": "1Gi"},
                "limits": {"memory": "4Gi", "ephemeral-storage": "1Gi"},
            },
        ),
    ],
    ids=str,
)
def test_what_is_given_stands_and_the_rest_stays_within_it(
    given: dict[str, Any], expected: dict[str, dict[str, str]]
) -> None:
    planned = found(given)
    assert planned == expected
    for name, limit in planned["limits"].items():
        assert parse_quantity(planned["requests"].get(name, 0)) <= parse_quantity(limit)


def test_a_contradiction_is_refused_by_the_field() -> None:
    with pytest.raises(InvalidInputError, match=r"spec\.router\.resources\.requests: a request is more than"):
        found({"requests": {"cpu": 1}, "limits": {"cpu": "500m"}})
