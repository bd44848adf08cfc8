"""Attached: whether the pods that a resource selects have its tier; `status.attach` and `status.tiers`."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from kvtier_common.tier import Tier
from kvtier_operator.api.resource import AttachState, ConditionStatus, Source, TierStatus, tier_status
from kvtier_operator.api.spec.tiers import fields_of
from kvtier_operator.planning.attach.engine_reasons import advice
from kvtier_operator.planning.attach.left_alone import LeftAlone, Reason
from kvtier_operator.planning.base.names import ATTACH_OPT_IN
from kvtier_operator.planning.cluster.growth import Refusal
from kvtier_operator.planning.observed import EngineTokens, TierFindings
from kvtier_operator.planning.units import many
from kvtier_operator.reconcile.facts.cached_plan import (
    UntimedCondition,
    false_condition,
    true_condition,
    unknown_condition,
)
from kvtier_operator.reconcile.facts.engine_report import EngineReport
from kvtier_operator.reconcile.facts.selected_pods import SelectedPod
from kvtier_operator.reconcile.observe.attachment import Injection

ATTACHED: Final = "Attached"
_MOST_PODS: Final = 100
"""Named in a status."""
_OFFLINE: Final = "or give its owner the patch of `kvtier attach`"
_KEPT: Final = "; no pod is changed"
_LABEL: Final = next(f"{name}={value}" for name, value in ATTACH_OPT_IN.items())
_NOT_SERVED: Final = (
    "the cluster serves no MutatingAdmissionPolicy, which Kubernetes 1.36 does, and 1.34 and 1.35 with that "
    f"feature gate and its v1beta1 API: turn it on and upgrade the chart, {_OFFLINE}"
)
_NOT_INSTALLED: Final = (
    "kvtier's MutatingAdmissionPolicy is not installed: install the chart with attach.enabled, or "
    f"manifests/components/attach, {_OFFLINE}"
)
_NO_POLICY: Final[Mapping[Injection, tuple[str, str]]] = {
    Injection.NOT_SERVED: ("PolicyNotServed", _NOT_SERVED),
    Injection.NOT_INSTALLED: ("PolicyMissing", _NOT_INSTALLED),
}


@dataclass(frozen=True, slots=True)
class PodReport:
    """One pod in the status."""

    pod: SelectedPod
    state: AttachState
    message: str = ""  # why, or what to do
    reason: str = ""  # CamelCase, of one that is left alone

    def entry(self) -> dict[str, str]:
        """As `status.attach.pods` has it."""
        told = {"reason": self.reason, "message": self.message}
        return {
            "name": self.pod.name,
            "state": self.state.value,
            **{name: text for name, text in told.items() if text},
        }


def pod_reports(
    pods: Sequence[SelectedPod],
    tier: str,
    left_alone: Mapping[str, LeftAlone] = MappingProxyType({}),
    engines: Mapping[str, EngineReport] = MappingProxyType({}),
    settings: str = "",
) -> tuple[PodReport, ...]:
    """What each selected pod is.

    Args:
        pods: All of them.
        tier: Name of the KVCacheTier that selects them.
        left_alone: Why pods are not changed, by their names.
        engines: What engines say, by pod; one that has not answered yet counts as attached.
        settings: Digest of the settings that are published; empty while nothing is.
    """
    return tuple(
        _pod_report(pod, tier, left_alone.get(pod.name), engines.get(pod.name), settings) for pod in pods
    )


def _pod_report(
    pod: SelectedPod, tier: str, left_alone: LeftAlone | None, engine: EngineReport | None, settings: str
) -> PodReport:
    if pod.attached_to == tier and engine is not None and engine.left_alone:
        return PodReport(pod, AttachState.LEFT_ALONE, advice(engine.reason), engine.reason)
    if pod.attached_to == tier and settings and pod.settings != settings:
        return PodReport(pod, AttachState.STARTED_BEFORE, pod.restart)
    if pod.attached_to == tier:
        return PodReport(pod, AttachState.ATTACHED, pod.payload or pod.unschedulable)
    if pod.attached_to:
        theirs = f"it has the tier of KVCacheTier {pod.attached_to}"
        return PodReport(pod, AttachState.LEFT_ALONE, theirs, Reason.SEVERAL_TIERS)
    if left_alone:
        return PodReport(pod, AttachState.LEFT_ALONE, left_alone.message, left_alone.reason)
    return PodReport(pod, AttachState.STARTED_BEFORE, pod.restart)


@dataclass(frozen=True, slots=True)
class Attachment:
    """What a status says of selected pods."""

    condition: UntimedCondition
    status: Mapping[str, Any]  # `status.attach`
    tiers: Mapping[str, Any]  # `status.tiers`
    again_s: float  # when to look again although nothing has changed
    # what every engine with the tier holds at least; None where none says it
    tokens: EngineTokens | None = None


def unseen(before: Mapping[str, Any] | None, status: Mapping[str, Any]) -> Attachment:
    """Before the pods were seen once: what was said of the same spec, or nothing yet."""
    if before is None:
        condition = unknown_condition(ATTACHED, "PodsNotSeen", "the pods were not seen yet")
        return Attachment(condition, {}, {}, math.inf)
    condition = UntimedCondition(
        ATTACHED, ConditionStatus(before["status"]), before["reason"], before["message"]
    )
    return Attachment(condition, status.get("attach") or {}, status.get("tiers") or {}, math.inf)


@dataclass(frozen=True, slots=True)
class AttachmentInput:
    """Everything that is said of a resource's pods."""

    namespace: str
    reports: Sequence[PodReport]
    selector: str  # labels of the pods, as kubectl takes them
    injection: Injection
    opted_in: bool
    refusal: Refusal | None = None  # why nothing is published; None where it may be
    shared: str = ""  # which of the pods other KVCacheTiers select too; empty where none are


def attached_condition(inputs: AttachmentInput) -> UntimedCondition:
    """The condition by what keeps pods from being changed, else by how many have the tier."""
    if inputs.refusal is not None:
        return false_condition(ATTACHED, inputs.refusal.reason, f"{inputs.refusal.message}{_KEPT}")
    if inputs.injection in _NO_POLICY:
        reason, message = _NO_POLICY[inputs.injection]
        return false_condition(ATTACHED, reason, message)
    if not inputs.opted_in:
        label = f"kubectl label namespace {inputs.namespace} {_LABEL}"
        message = f"namespace {inputs.namespace} does not let its pods be changed: {label}"
        return false_condition(ATTACHED, "NamespaceNotOptedIn", message)
    if inputs.shared:
        return false_condition(ATTACHED, Reason.SEVERAL_TIERS, inputs.shared)
    if not inputs.reports:
        made = "those that are made from now on get the tier"
        return false_condition(ATTACHED, "NoPods", f"no pod has the labels {inputs.selector} yet; {made}")
    return _counted(inputs.reports)


def _counted(reports: Sequence[PodReport]) -> UntimedCondition:
    by_state = {state: [report for report in reports if report.state is state] for state in AttachState}
    have = len(by_state[AttachState.ATTACHED])
    count = f"{have} of {many(len(reports), 'pod')} {'has' if 1 in (have, len(reports)) else 'have'} the tier"
    if before := by_state[AttachState.STARTED_BEFORE]:
        commands = "; ".join(dict.fromkeys(report.message for report in before if report.message))
        older = sum(bool(report.pod.attached_to) for report in before)
        started = {"started before it": len(before) - older, "with an older plan": older}
        parts = ", ".join(f"{number} {how}" for how, number in started.items() if number)
        message = f"{count}; {parts}: {commands or 'have them made anew'}"
        return false_condition(ATTACHED, AttachState.STARTED_BEFORE.value, message)
    if alone := by_state[AttachState.LEFT_ALONE]:
        message = f"{count}; pod {alone[0].pod.name} is left alone: {alone[0].message}"
        return false_condition(ATTACHED, AttachState.LEFT_ALONE.value, message)
    return true_condition(ATTACHED, "AllAttached", count)


def pod_entries(reports: Sequence[PodReport]) -> list[dict[str, str]]:
    """What `status.attach.pods` has: first those that something is to be done about."""
    order = (AttachState.STARTED_BEFORE, AttachState.LEFT_ALONE, AttachState.ATTACHED)
    by_need = sorted(reports, key=lambda report: (order.index(report.state), report.pod.name))
    return [report.entry() for report in by_need[:_MOST_PODS]]


def attached_tiers(
    asked_bytes: Mapping[Tier, int],
    pods: Sequence[SelectedPod],
    engines: Mapping[str, EngineReport],
    before: Mapping[str, Any] = MappingProxyType({}),
) -> Mapping[str, Any]:
    """`status.tiers`: as the first of the engines with a tier says, by name; as asked for before one does.

    Sizes are not held against the plan, as those of engines of kvtier's own are: only the status has them.

    Args:
        asked_bytes: Capacity of each tier that the resource has.
        pods: Those that have its tier, by name.
        engines: What engines say, by pod.
        before: What was said of the same spec, which holds while engines that may have the tier, or the
            operator, start anew.
    """
    reports = [engines.get(pod.name, EngineReport()) for pod in pods]
    report = next((report for report in reports if report.sized), EngineReport())
    if before and not report.sized and not all(report.left_alone for report in reports):
        return before
    sizes = {tier: _tier(tier, report) for tier in Tier if tier in report.tokens.by_tier}
    planned = {tier: TierStatus(bytes=size_bytes) for tier, size_bytes in asked_bytes.items()}
    return {
        tier.label: (planned | sizes)[tier].model_dump(mode="json", by_alias=True, exclude_none=True)
        for tier in Tier
        if tier in planned | sizes
    }


def least_tokens(reports: Iterable[EngineReport]) -> EngineTokens | None:
    """What engines hold at least, so that a picker sends none of them after what it has dropped.

    None where none that has the tier says how much.
    """
    sized = [report.tokens for report in reports if report.sized]
    if not sized:
        return None
    common = [tier for tier in Tier if all(tier in tokens.by_tier for tokens in sized)]
    blocks = {tokens.block for tokens in sized}
    return EngineTokens(
        {tier: min(tokens.by_tier[tier] for tokens in sized) for tier in common},
        block=blocks.pop() if len(blocks) == 1 else None,
    )


def _tier(tier: Tier, report: EngineReport) -> TierStatus:
    findings = report.findings.get(tier, TierFindings())
    told = {
        "bytes": report.capacity_bytes.get(tier),
        "tokens": report.tokens.by_tier[tier],
        "source": Source.OBSERVED,
        "block_tokens": report.tokens.block,
        "pinned_bytes": findings.pinned_bytes,
        "pays": findings.pays,
    }
    # what is not this tier's is left out
    return tier_status(fields_of(tier)).model_validate(told)
