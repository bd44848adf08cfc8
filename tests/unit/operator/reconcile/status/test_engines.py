"""EnginesReady: what engines got of their tiers, and every way in which they are not ready."""

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.operator.reconcile.objects import plan_objects
from tests.unit.operator.reconcile.status.statuses import FULL, READY, conditions

from kvtier_operator.planning.base.names import Component
from kvtier_operator.reconcile.api_server import BY_NAME
from kvtier_operator.reconcile.apply.apply import ApplyFailure
from kvtier_operator.reconcile.cache.pods import NotReadyPod
from kvtier_operator.reconcile.facts.objects import AutoscalerFacts
from kvtier_operator.reconcile.status.router import unserved_kinds

_GIB = 1 << 30


@pytest.mark.parametrize(
    ("cpu", "disk", "said"),
    [
        ({}, {}, ""),
        ({"pinnedBytes": 99 * _GIB}, {}, "; each has a CPU tier of 100 GiB, locked in memory"),
        (
            {"pinnedBytes": 20 * _GIB},
            {"pays": True},
            (
                "; each has a CPU tier of 100 GiB, of which 20 GiB are locked in memory: "
                "its log says what refused the rest"
            ),
        ),
        (
            {},
            {"pays": False},
            (
                "; its disk tier is not used, because computing is sooner than reading from it: "
                "give it a faster disk, or none"
            ),
        ),
    ],
)
def test_what_engines_really_got_of_their_tiers(cpu: dict[str, Any], disk: dict[str, Any], said: str) -> None:
    observed = {"bytes": 100 * _GIB, "tokens": 409_600, "source": "Observed"}
    known = replace(FULL.plan, tiers={"cpu": observed | cpu, "disk": observed | disk})
    found = conditions(replace(FULL, plan=known))
    assert found["EnginesReady"]["message"] == f"2 of 2 engine pods ready{said}"


def test_a_store_that_does_not_pay() -> None:
    remote = {"bytes": 100 * _GIB, "tokens": 409_600, "source": "Observed", "pays": False}
    found = conditions(replace(FULL, plan=replace(FULL.plan, tiers={"remote": remote})))
    assert found["EnginesReady"]["message"] == (
        "2 of 2 engine pods ready; its remote tier is not used, because computing is sooner than reading "
        "from it: give it a faster network, or none"
    )


_WAITS = NotReadyPod("new", "", "Unschedulable", "1 Insufficient nvidia.com/gpu", rank=3)


_DRAINS = NotReadyPod("old", "node", "", "", rank=9, terminating=True)


_ENGINES = [
    ({"engine": None}, "NotCreated", ""),
    ({"engine": replace(READY, ready_replicas=1)}, "Progressing", "1 of 2 engine pods ready; one has"),
    ({"engine": replace(READY, replicas=3)}, "Progressing", "3 exist (1 of an older spec)"),
    ({"engine": replace(READY, observed_latest=False)}, "Progressing", ""),
    ({"engine": replace(READY, ready_replicas=0, stalled=True)}, "ProgressDeadlineExceeded", "logs"),
    (
        {
            "engine": replace(
                READY, replicas=0, failed_reason="FailedCreate", failed_message="exceeded quota: q"
            )
        },
        "QuotaExceeded",
        "exceeded quota: q; raise the namespace's ResourceQuota",
    ),
    (
        {
            "engine": replace(
                READY, replicas=0, failed_reason="FailedCreate", failed_message="webhook says no"
            )
        },
        "FailedCreate",
        "webhook says no; the namespace's LimitRanges",
    ),
    (
        {"engine": replace(READY, ready_replicas=0, lacks_model_volume=True)},
        "ImageVolumesOff",
        "feature gate ImageVolume",
    ),
    ({"failures": (ApplyFailure(Component.ENGINE, "Forbidden", "because"),)}, "Forbidden", "because"),
    (
        {"engine": replace(READY, ready_replicas=1), "engine_pods_not_ready": (_WAITS,)},
        "Unschedulable",
        "Insufficient nvidia.com/gpu; if NodesFit is True, other pods hold the room",
    ),
    (
        {"engine": replace(READY, ready_replicas=1), "engine_pods_not_ready": (_WAITS, _DRAINS)},
        "Progressing",
        "pod new waits for the room of 1 pod still draining",
    ),
]


@pytest.mark.parametrize(("change", "reason", "words"), _ENGINES)
def test_engines_are_not_ready(change: dict[str, Any], reason: str, words: str) -> None:
    found = conditions(replace(FULL, **change))
    assert (found["EnginesReady"]["status"], found["EnginesReady"]["reason"]) == ("False", reason)
    assert words in found["EnginesReady"]["message"]
    assert (found["Ready"]["status"], found["Ready"]["reason"]) == ("False", reason)


def test_the_most_telling_pod_is_named_with_how_many_are_alike_and_what_to_do() -> None:
    not_ready = [
        NotReadyPod("pod-a", "node-1", "ImagePullBackOff", "no such image", 1),
        NotReadyPod("pod-b", "", "ImagePullBackOff", "no such image", 1),
        NotReadyPod("pod-c", "", "", "", 9),
    ]
    found = conditions(
        replace(FULL, engine=replace(READY, ready_replicas=0), engine_pods_not_ready=not_ready)
    )
    said = found["EnginesReady"]["message"]
    assert "pod pod-a on node node-1 (and 1 more like it): ImagePullBackOff: no such image" in said
    assert "spec.imagePullSecrets" in said


SCALED = replace(FULL, plan=plan_objects({"spec.autoscaling": {"minReplicas": 2, "maxReplicas": 8}})[0])
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
    assert {found[name]["status"] for name in ("EnginesReady", "RouterReady", "Ready")} == {"True"}


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
    assert {found[name]["status"] for name in ("EnginesReady", "RouterReady", "Ready")} == {"True"}
