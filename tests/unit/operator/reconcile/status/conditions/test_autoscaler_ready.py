"""AutoscalerReady: there only where something scales, and in words that help."""

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.operator.reconcile.objects import planned
from tests.unit.operator.reconcile.status.statuses import FULL, conditions

from kvtier_operator.planning.objects.names import Component
from kvtier_operator.reconcile.api_server import BY_NAME
from kvtier_operator.reconcile.apply.apply import ApplyFailure
from kvtier_operator.reconcile.facts.objects import AutoscalerFacts
from kvtier_operator.reconcile.status.router import unserved_kinds

SCALED = replace(FULL, plan=planned({"spec.autoscaling": {"minReplicas": 2, "maxReplicas": 8}})[0])
NAME = "HorizontalPodAutoscaler qwen3-32b-engine"
_NO_METRIC = (
    f"{NAME} does not scale, so the engines stay as many as they are: no API; it needs a metrics adapter "
    "that serves vllm_num_requests_waiting of pods (custom.metrics.k8s.io), or KEDA with "
    "spec.autoscaling.prometheusUrl"
)
_PAUSED = (
    f"{NAME} has an annotation autoscaling.keda.sh/paused, -replicas, -scale-in or -scale-out: remove it, "
    "and it keeps 2 to 8 engine pods by 5 waiting requests an engine"
)


def test_it_is_not_there_where_the_resource_says_how_many() -> None:
    assert "AutoscalerReady" not in conditions(FULL)


@pytest.mark.parametrize(
    ("changes", "status", "reason", "message"),
    [
        ({}, "False", "NotCreated", f"{NAME} is not there yet"),
        (
            {"autoscaler": AutoscalerFacts()},
            "Unknown",
            "NotReported",
            f"{NAME} has not said yet that it keeps 2 to 8 engine pods by 5 waiting requests an engine",
        ),
        (
            {"autoscaler": AutoscalerFacts(scales=True)},
            "True",
            "Scaling",
            f"{NAME} keeps 2 to 8 engine pods by 5 waiting requests an engine",
        ),
        (
            {"autoscaler": AutoscalerFacts(scales=False, reason="FailedGetPodsMetric", message="no API")},
            "False",
            "FailedGetPodsMetric",
            _NO_METRIC,
        ),
        (
            {"autoscaler": AutoscalerFacts(scales=False, paused=True)},
            "False",
            "Paused",
            _PAUSED,
        ),
        (
            {"failures": [ApplyFailure(Component.AUTOSCALER, "Forbidden", f"{NAME} cannot be written")]},
            "False",
            "Forbidden",
            f"{NAME} cannot be written",
        ),
    ],
)
def test_what_it_says(changes: dict[str, Any], status: str, reason: str, message: str) -> None:
    found = conditions(replace(SCALED, **changes))
    said = found["AutoscalerReady"]
    assert (said["status"], said["reason"], said["message"]) == (status, reason, message)
    assert {found[each]["status"] for each in ("EnginesReady", "RouterReady", "Ready")} == {"True"}


@pytest.mark.parametrize("reason", ["", "no reason", "Long" * 300])
def test_a_reason_that_the_api_does_not_take_is_left_out(reason: str) -> None:
    odd = replace(SCALED, autoscaler=AutoscalerFacts(scales=False, reason=reason))
    assert conditions(odd)["AutoscalerReady"]["reason"] == "NotScaling"


def test_an_autoscaler_that_cannot_be_deleted_is_said_of_the_engines_that_wait_for_it() -> None:
    stays = ApplyFailure(Component.AUTOSCALER, "Forbidden", f"{NAME} cannot be deleted")
    found = conditions(replace(FULL, failures=(stays,)))
    said = found["EnginesReady"]
    assert (said["reason"], said["message"]) == (stays.reason, stays.message)
    assert found["RouterReady"]["status"] == "True"
    assert "AutoscalerReady" not in found


def test_a_kind_that_may_not_be_listed_is_the_autoscalers_alone() -> None:
    kinds = unserved_kinds([BY_NAME["ScaledObject"]], lambda _: "no rights")
    found = conditions(replace(SCALED, kinds=kinds))
    said = found["AutoscalerReady"]
    assert (said["reason"], said["message"]) == ("Forbidden", "ScaledObject cannot be made: no rights")
    assert {found[each]["status"] for each in ("EnginesReady", "RouterReady", "Ready")} == {"True"}
