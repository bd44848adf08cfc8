"""What autoscalers say of themselves."""

from typing import Any

import pytest

from kvtier_operator.reconcile.facts.objects import AutoscalerFacts, autoscaler_facts

HPA, KEDA = "HorizontalPodAutoscaler", "ScaledObject"
NO_ADAPTER = "the HPA was unable to compute the replica count:\n no custom metrics API registered"
FORGED = "\x1b[2Jall\r\nis well" + "!" * 9999


def said(type_: str, status: str, reason: str = "", message: str = "") -> dict[str, str]:
    return {"type": type_, "status": status, "reason": reason, "message": message}


def failed(reason: str, message: str) -> AutoscalerFacts:
    return AutoscalerFacts(scales=False, reason=reason, message=message)


ABLE = said("AbleToScale", "True", "ReadyForNewScale")


@pytest.mark.parametrize(
    ("kind", "conditions", "facts"),
    [
        (HPA, None, AutoscalerFacts()),
        (HPA, [ABLE], AutoscalerFacts()),
        (HPA, [ABLE, said("ScalingActive", "Unknown")], AutoscalerFacts()),
        (
            HPA,
            [ABLE, said("ScalingActive", "True"), said("ScalingLimited", "True")],
            AutoscalerFacts(scales=True),
        ),
        (
            HPA,
            [ABLE, said("ScalingActive", "False", "FailedGetPodsMetric", NO_ADAPTER)],
            failed("FailedGetPodsMetric", " ".join(NO_ADAPTER.split())),
        ),
        (
            HPA,
            [said("AbleToScale", "False", "FailedGetScale", "no")],
            failed("FailedGetScale", "no"),
        ),
        (KEDA, [], AutoscalerFacts()),
        (KEDA, [said("Ready", "True"), said("Active", "False")], AutoscalerFacts(scales=True)),
        (
            KEDA,
            [said("Ready", "True"), said("Paused", "True", "ScaledObjectPaused")],
            AutoscalerFacts(scales=False, paused=True),
        ),
        (KEDA, [said("Ready", "True"), said("Paused", "False")], AutoscalerFacts(scales=True)),
        (
            KEDA,
            [said("Ready", "False", "TriggerError", "x")],
            failed("TriggerError", "x"),
        ),
        (
            HPA,
            [ABLE, said("ScalingActive", "False", "FailedGetPodsMetric", FORGED)],
            failed("FailedGetPodsMetric", "?[2Jall is well" + "!" * 1009 + " ..."),
        ),
        (KEDA, [{"type": "Ready", "status": "False", "message": None}, {}], failed("", "")),
        ("Deployment", [], None),
    ],
)
def test_conditions(
    kind: str, conditions: list[dict[str, Any]] | None, facts: AutoscalerFacts | None
) -> None:
    status = {} if conditions is None else {"status": {"conditions": conditions}}
    assert autoscaler_facts(kind, {"metadata": {"name": "a"}, **status}) == facts
