"""EnginesReady: what engines got of their tiers, and every way in which they are not ready."""

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.operator.reconcile.status.statuses import FULL, READY, conditions

from kvtier_operator.planning.objects.names import Component
from kvtier_operator.reconcile.apply.apply import ApplyFailure
from kvtier_operator.reconcile.facts.pod import NotReadyPod

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
