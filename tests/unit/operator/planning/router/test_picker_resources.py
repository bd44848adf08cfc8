"""The picker's requests and limits: kvtier's own, and what a resource puts over them."""

from typing import Any

import pytest
from tests.cases.planning import resource

from kvtier_operator.api.quantity import parse_quantity
from kvtier_operator.errors import InvalidInputError
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.planner import make_plan
from kvtier_scorer.config.parse import parse_settings

# 409,600 tokens of the CPU tier / 64 = 6,400 entries, and 31,250 of a device's cache that is not known:
# x 8 engines x 1,280 B on top of 512 MiB, to 64 MiB
OWN = {"requests": {"cpu": "500m", "memory": "896Mi"}, "limits": {"memory": "1792Mi"}}


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


@pytest.mark.parametrize(
    ("more", "limit"),
    [({}, "1152Mi"), ({"maxBodySize": "256Mi"}, "4864Mi")],
    ids=["follows the model", "asked for"],
)
def test_the_limit_of_kvtiers_own_picker_holds_all_the_bodies_that_it_takes(
    more: dict[str, Any], limit: str
) -> None:
    planned = make_plan(resource(router={"flavor": "builtin", **more}), Observed()).router
    bodies = parse_settings(planned.config).limits
    assert planned.resources.limits["memory"] == limit
    assert parse_quantity(limit) >= planned.resources.memory_bytes > 3 * bodies.total_body_bytes
    assert bodies.max_body_bytes == (256 << 20 if more else 8 << 20)
    # what it does not need from the start is a limit and no request
    assert planned.resources.requests["memory"] == "576Mi"


def test_a_limit_that_leaves_no_room_for_bodies_is_warned_of() -> None:
    given = {"flavor": "builtin", "maxBodySize": "256Mi", "resources": {"limits": {"memory": "2Gi"}}}
    plan = make_plan(resource(router=given), Observed())
    [found] = [check for check in plan.checks if check.reason == "PickerMemoryShort"]
    assert "all the bodies that it takes" in found.message


def test_what_the_engines_events_tell_is_planned_too() -> None:
    planned, told = (
        make_plan(resource(router={"flavor": "builtin", "kvEvents": told}), Observed()).router.resources
        for told in (False, True)
    )
    # 37,650 entries of 8 engines at 160 B each, and messages of 128 MiB
    assert told.memory_bytes - planned.memory_bytes >= 37_650 * 8 * 160 + (64 << 20)


def test_upstreams_pickers_have_memory_for_requests_under_way() -> None:
    """100 engines, 99 requests a second and 100,000 tokens each came to 3.41 GiB, index and all."""

    def limit(engines: int) -> int:
        planned = make_plan(resource(engine={"kvCacheMemory": "20Gi"}, replicas=engines), Observed())
        return int(parse_quantity(planned.router.resources.limits["memory"]))

    # 512 MiB, 128 engines x (7,680 entries x 1,280 B and 48 MiB), to 64 MiB
    assert limit(100) == 7_872 << 20
    assert limit(100) == limit(128) > 3.41 * (1 << 30)
