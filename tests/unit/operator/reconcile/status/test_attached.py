"""Condition Attached: what is to be done next."""

from dataclasses import replace

import pytest

from kvtier_common.tier import Tier
from kvtier_operator.api.resource import AttachState
from kvtier_operator.planning.attach.left_alone import LeftAlone, Reason
from kvtier_operator.planning.cluster.growth import Refusal
from kvtier_operator.planning.observed import EngineTokens, TierFindings
from kvtier_operator.reconcile.facts.engine_report import EngineReport
from kvtier_operator.reconcile.facts.selected_pods import SelectedPod
from kvtier_operator.reconcile.observe.attachment import Injection
from kvtier_operator.reconcile.status.attached import (
    AttachmentInput,
    attached_condition,
    attached_tiers,
    least_tokens,
    pod_entries,
    pod_reports,
)

RESTART = "kubectl rollout restart -n team deployment/chat"
OLD = SelectedPod("chat-old", restart=RESTART)
ATTACHED = SelectedPod("chat-new", attached_to="chat", restart=RESTART)
OTHERS = SelectedPod("chat-other", attached_to="long")

_NOT_SERVED = (
    "the cluster serves no MutatingAdmissionPolicy, which Kubernetes 1.36 does, and 1.34 and 1.35 with that "
    "feature gate and its v1beta1 API: turn it on and upgrade the chart, or give its owner the patch of "
    "`kvtier attach`"
)
_ONE_STAGE = (
    "1 of 2 pods has the tier; pod chat-2 is left alone: its engine is pipeline-parallel: use tensor or data "
    "parallelism, with --pipeline-parallel-size 1"
)
_NOT_OPTED_IN = (
    "namespace team does not let its pods be changed: kubectl label namespace team kvtier.dev/attach=enabled"
)


def _inputs(*pods: SelectedPod, left_alone: LeftAlone | None = None, **reasons: str) -> AttachmentInput:
    engines = {name.replace("_", "-"): EngineReport(reason) for name, reason in reasons.items()}
    reports = pod_reports(
        pods, "chat", dict.fromkeys((pod.name for pod in pods), left_alone) if left_alone else {}, engines
    )
    return AttachmentInput("team", reports, "app=chat", Injection.INSTALLED, opted_in=True)


@pytest.mark.parametrize(
    ("inputs", "reason", "message"),
    [
        (
            replace(_inputs(OLD), refusal=Refusal("QuotaExceeded", "no room")),
            "QuotaExceeded",
            "no room; no pod is changed",
        ),
        (
            replace(_inputs(OLD), injection=Injection.NOT_SERVED, opted_in=False),
            "PolicyNotServed",
            _NOT_SERVED,
        ),
        (
            replace(_inputs(OLD), opted_in=False),
            "NamespaceNotOptedIn",
            _NOT_OPTED_IN,
        ),
        (
            _inputs(),
            "NoPods",
            "no pod has the labels app=chat yet; those that are made from now on get the tier",
        ),
        (
            _inputs(OLD, replace(OLD, name="chat-2"), ATTACHED),
            "StartedBefore",
            f"1 of 3 pods has the tier; 2 started before it: {RESTART}",
        ),
        (
            _inputs(ATTACHED, OTHERS),
            "LeftAlone",
            "1 of 2 pods has the tier; pod chat-other is left alone: it has the tier of KVCacheTier long",
        ),
        (
            _inputs(OLD, left_alone=LeftAlone(Reason.QUEUED, "it waits for Kueue")),
            "LeftAlone",
            "0 of 1 pod has the tier; pod chat-old is left alone: it waits for Kueue",
        ),
        (
            _inputs(ATTACHED, replace(ATTACHED, name="chat-2"), chat_2="PipelineParallel"),
            "LeftAlone",
            _ONE_STAGE,
        ),
    ],
)
def test_the_first_thing_to_do_is_told(inputs: AttachmentInput, reason: str, message: str) -> None:
    condition = attached_condition(inputs)
    assert (condition.is_true, condition.reason, condition.message) == (False, reason, message)


def test_all_attached() -> None:
    condition = attached_condition(_inputs(ATTACHED, replace(ATTACHED, name="chat-2"), chat_2="Attached"))
    assert (condition.is_true, condition.message) == (True, "2 of 2 pods have the tier")


def test_the_status_names_first_who_waits_for_somebody() -> None:
    assert pod_entries(_inputs(ATTACHED, OTHERS, OLD).reports) == [
        {"name": "chat-old", "state": "StartedBefore", "message": RESTART},
        {
            "name": "chat-other",
            "state": "LeftAlone",
            "reason": "SeveralTiers",
            "message": "it has the tier of KVCacheTier long",
        },
        {"name": "chat-new", "state": "Attached"},
    ]


def test_a_pod_with_an_older_plan_gets_the_new_one_when_it_is_made_anew() -> None:
    older, current = replace(ATTACHED, settings="a"), replace(ATTACHED, name="chat-2", settings="b")
    told = attached_condition(
        replace(_inputs(), reports=pod_reports([OLD, older, current], "chat", {}, {}, "b"))
    )
    assert (told.reason, told.message) == (
        "StartedBefore",
        f"1 of 3 pods has the tier; 1 started before it, 1 with an older plan: {RESTART}",
    )
    [withdrawn] = pod_reports([older], "chat", settings="")
    assert withdrawn.state is AttachState.ATTACHED, "nothing newer is published"
    [alone] = pod_reports([older], "chat", {}, {"chat-new": EngineReport("HasConnector")}, "b")
    assert alone.state is AttachState.LEFT_ALONE, "another start would not help"


def test_tiers_are_as_the_first_engine_that_has_them_says() -> None:
    asked_bytes, pods = {Tier.CPU: 100 << 30}, [ATTACHED, replace(ATTACHED, name="chat-2")]
    planned = {"cpu": {"bytes": 100 << 30, "source": "Planned"}}
    left_alone = EngineReport("HasConnector", EngineTokens({Tier.GPU: 7, Tier.CPU: 7}))
    assert attached_tiers(asked_bytes, pods, {"chat-new": left_alone}) == planned
    before = {"cpu": {"bytes": 100 << 30, "tokens": 409_600, "source": "Observed"}}
    assert attached_tiers(asked_bytes, pods, {"chat-new": left_alone}, before) == before
    none = {pod.name: left_alone for pod in pods}
    assert attached_tiers(asked_bytes, pods, none, before) == planned, "nobody has them any more"
    report = EngineReport(
        "Attached",
        EngineTokens({Tier.GPU: 64_000, Tier.CPU: 409_600}, block=16),
        {Tier.CPU: 99 << 30},
        {Tier.CPU: TierFindings(pinned_bytes=1 << 30)},
    )
    assert attached_tiers(asked_bytes, pods, {"chat-new": left_alone, "chat-2": report}) == {
        "gpu": {"tokens": 64_000, "source": "Observed", "blockTokens": 16},
        "cpu": {"bytes": 99 << 30, "tokens": 409_600, "source": "Observed", "pinnedBytes": 1 << 30},
    }


def test_a_picker_is_told_what_every_engine_holds_at_least() -> None:
    small = EngineReport("Attached", EngineTokens({Tier.GPU: 900, Tier.CPU: 5000}, block=16))
    large = EngineReport("Attached", EngineTokens({Tier.GPU: 1600, Tier.CPU: 4096, Tier.DISK: 1}, block=32))
    assert least_tokens([small, large]) == EngineTokens({Tier.GPU: 900, Tier.CPU: 4096})
    assert least_tokens([small]) == small.tokens
    left_alone = replace(small, reason="HasConnector")
    assert least_tokens([left_alone, EngineReport("Attached")]) is None
