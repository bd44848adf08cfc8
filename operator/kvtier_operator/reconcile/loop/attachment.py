"""One resource's part in pods that others own: what is published for them, and what is said of them."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kvtier_operator.planning.attach.as_owned import as_owned
from kvtier_operator.planning.attach.command import find_obstacle
from kvtier_operator.planning.attach.container import engine_index
from kvtier_operator.planning.attach.left_alone import LeftAlone, Reason
from kvtier_operator.planning.attach.plan import AttachPlan, settings_digest
from kvtier_operator.planning.attach.pod import attach_pod
from kvtier_operator.planning.attach.rivals import Rival, left_without, shared_with
from kvtier_operator.planning.base.node import Node
from kvtier_operator.planning.cluster.claim_room import claims_of, claims_refusal
from kvtier_operator.planning.cluster.growth import Growth, Refusal, growth_refusal, unmeasured_refusal
from kvtier_operator.planning.cluster.storage import StorageClass
from kvtier_operator.planning.images import PUBLISHED, ImageName
from kvtier_operator.planning.units import many
from kvtier_operator.reconcile.cache.attach_selectors import AttachSelectors
from kvtier_operator.reconcile.cache.resources import Key
from kvtier_operator.reconcile.cache.selected_pods import SelectedPods, SelectedPodWatches
from kvtier_operator.reconcile.cache.watches import Watches
from kvtier_operator.reconcile.facts.cached_plan import CachedPlan
from kvtier_operator.reconcile.facts.pod_kind import kind_name
from kvtier_operator.reconcile.facts.selected_pods import SelectedPod
from kvtier_operator.reconcile.loop.clock import Clock
from kvtier_operator.reconcile.observe.attached_engines import AttachedEngineObserver, EngineReports
from kvtier_operator.reconcile.observe.attachment import KEPT_S, AttachmentLookup, AttachmentTerms
from kvtier_operator.reconcile.status.attached import (
    ATTACHED,
    Attachment,
    AttachmentInput,
    attached_condition,
    attached_tiers,
    least_tokens,
    pod_entries,
    pod_reports,
    unseen,
)
from kvtier_operator.reconcile.status.withdrawal import (
    Withdrawal,
    next_withdrawal,
    patience_s,
    withdrawal_from_status,
)


@dataclass(frozen=True, slots=True)
class Attachments:
    """Watches the pods that resources select, and says what is published for them."""

    selected_pods: SelectedPodWatches
    selectors: AttachSelectors
    engines: AttachedEngineObserver
    lookup: AttachmentLookup
    watches: Watches
    clock: Clock
    reconcile_in: Callable[[Key, float], None]

    async def of(self, key: Key, plan: CachedPlan, status: Mapping[str, Any]) -> Attachment | None:
        """What the status is to say; None for a resource that has pods of its own.

        Until the pods were seen once it says what it said before.

        Args:
            key: The resource.
            plan: Its plan.
            status: Its status as it is.
        """
        if plan.attach is None:
            self.forget(key)
            return None
        said = next(
            (condition for condition in status.get("conditions") or () if condition["type"] == ATTACHED), None
        )
        before = said if said and said["observedGeneration"] == plan.generation else None
        pods = self.selected_pods.follow(key, plan.attach.attach.pod_selector.match_labels)
        if not pods.listed:
            return unseen(before, status)
        published = status.get("attach") or {}
        attached = [pod for pod in pods.all if pod.attached_to == key.name]
        observed = SelectionObservation(
            pods=pods,
            terms=await self.lookup.of(key.namespace),
            nodes=None if self.watches.nodes_unknown else self.watches.nodes.all,
            withdrawn=withdrawal_from_status(published) if before is not None else None,
            published=before is not None and "settings" in published,
            tiers=(status.get("tiers") or {}) if before is not None else {},
            engines=self.engines.look(key, attached, published.get("pods") or ()),
            now=self.clock.now(),
            storage_classes=self.watches.storage_classes.all,
            rivals=self._rivals(key, pods),
        )
        attachment = attach(plan.attach, observed)
        self.reconcile_in(key, attachment.again_s)
        return attachment

    def _rivals(self, key: Key, pods: SelectedPods) -> tuple[Rival, ...]:
        """Resources that may select the same pods, with those that they do."""
        names = frozenset(pods.names)
        return tuple(
            replace(rival, pods=names & {*self.selected_pods.names_of(Key(key.namespace, rival.name))})
            for rival in self.selectors.rivals(key)
        )

    def forget(self, key: Key) -> None:
        """A resource selects no pods any more."""
        self.selected_pods.forget(key)
        self.engines.forget(key)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Lets pods be watched and their engines asked until the end of the block."""
        async with self.selected_pods.open(), self.engines.open():
            yield


@dataclass(frozen=True, slots=True)
class SelectionObservation:
    """What is seen of a resource's pods and of what surrounds them."""

    pods: SelectedPods
    terms: AttachmentTerms
    nodes: Sequence[Node] | None
    published: bool  # whether that spec's plan is published already
    now: str  # RFC 3339 in UTC
    engines: EngineReports = field(default_factory=EngineReports)  # what engines of those pods say
    tiers: Mapping[str, Any] = field(default_factory=dict)  # `status.tiers` of the same spec, as it is
    withdrawn: Withdrawal | None = None  # what was taken back last for the same spec
    storage_classes: Sequence[StorageClass] | None = None  # the cluster's; None where they are not known
    rivals: Sequence[Rival] = ()  # other resources that may select the same pods


def attach(plan: AttachPlan, observed: SelectionObservation) -> Attachment:
    """What is published for pods that others own, and what is said of them.

    Args:
        plan: What they are given.
        observed: What is seen.
    """
    labels, settings = plan.attach.pod_selector.match_labels, settings_digest(plan.settings)
    reports = observed.engines.by_pod
    attached = [pod for pod in observed.pods.all if pod.attached_to == plan.name]
    current = [pod for pod in attached if pod.settings == settings]
    shared = frozenset[str]().union(*(rival.pods for rival in observed.rivals))
    own = [pod for pod in observed.pods.all if pod.name not in shared]
    own_kinds = {pod.kind for pod in own}
    kinds = [
        _kind(plan, kind, sample)
        for kind, sample in observed.pods.samples.items()
        if kind in own_kinds or not observed.pods.names
    ]
    withdrawn = next_withdrawal(current, observed.withdrawn, observed.now)
    refusal = (
        _rivals_refusal(labels, observed)
        or (withdrawn.refusal(observed.now) if withdrawn else None)
        or _kinds_refusal(kinds, len(observed.pods.unsampled))
        or _growth_refusal(plan, observed, own, kinds)
    )
    inputs = AttachmentInput(
        namespace=plan.namespace,
        reports=pod_reports(
            observed.pods.all,
            plan.name,
            _left_alone(observed.pods.all, shared, kinds),
            reports,
            settings if refusal is None else "",
        ),
        selector=",".join(f"{name}={labels[name]}" for name in sorted(labels)),
        injection=observed.terms.injection,
        opted_in=observed.terms.opted_in,
        refusal=refusal,
        shared=shared_with(labels, observed.rivals),
    )
    condition, pods = attached_condition(inputs), pod_entries(inputs.reports)
    waits = [patience_s(pod, observed.now) for pod in current]
    waits += [withdrawn.wait_s(observed.now)] if withdrawn else []
    looked_at_s = KEPT_S if condition.reason in _ASKED_AGAIN else _LOOKED_AT_S
    return Attachment(
        condition=condition,
        status={
            **(_published(plan, observed.rivals) if refusal is None else {}),
            **({"withdrawn": withdrawn.status} if withdrawn else {}),
            **({"pods": pods} if pods else {}),
        },
        tiers=attached_tiers(plan.capacity_bytes, attached, reports, observed.tiers),
        tokens=least_tokens(
            observed.engines.by_pod[pod.name] for pod in attached if pod.name in observed.engines.by_pod
        ),
        again_s=min([looked_at_s, observed.engines.again_s, *(wait_s for wait_s in waits if wait_s > 0)]),
    )


def _published(plan: AttachPlan, rivals: Sequence[Rival]) -> dict[str, Any]:
    """The plan, and which pods the policy leaves out."""
    left_out = [rival.status for rival in rivals]
    return {**plan.status, **({"leavesOut": left_out} if left_out else {})}


@dataclass(frozen=True, slots=True)
class _Kind:
    """Pods that are alike."""

    key: str  # as SelectedPod.kind
    owner: str  # for people
    now: Mapping[str, Any]  # one of them as its owner has it
    then: Mapping[str, Any] | None  # the same with the tier; None where it is left alone
    left_alone: LeftAlone | None  # why; None where it is not
    obstacle: bool = False  # whether it would be changed, and its engine would have no tier all the same


def _kind(plan: AttachPlan, key: str, sample: Mapping[str, Any]) -> _Kind:
    owner, now = kind_name(key, sample["metadata"]["name"]), as_owned(sample)
    then = attach_pod(plan, now, PUBLISHED[ImageName.CONNECTOR])
    if isinstance(then, LeftAlone):
        return _Kind(key, owner, now, None, then)
    obstacle = find_obstacle(now["spec"]["containers"][engine_index(now["spec"], plan.attach.container)])
    if obstacle is not None:
        return _Kind(key, owner, now, None, obstacle, obstacle=True)
    return _Kind(key, owner, now, then, None)


def _left_alone(
    pods: Sequence[SelectedPod], shared: Collection[str], kinds: Sequence[_Kind]
) -> Mapping[str, LeftAlone]:
    """Why pods are not changed, by their names."""
    of_kind = {kind.key: kind.left_alone for kind in kinds}
    several = LeftAlone(Reason.SEVERAL_TIERS, "another KVCacheTier selects it too: have one select it")
    whys = {pod.name: several if pod.name in shared else of_kind.get(pod.kind) for pod in pods}
    return {name: why for name, why in whys.items() if why}


def _rivals_refusal(labels: Mapping[str, str], observed: SelectionObservation) -> Refusal | None:
    why = left_without(labels, observed.pods.names, observed.rivals)
    return Refusal(Reason.SEVERAL_TIERS, why) if why else None


def _kinds_refusal(kinds: Sequence[_Kind], unsampled: int) -> Refusal | None:
    """Why no pod is changed, for the sake of those that would be in vain or were not looked at."""
    if unsampled:
        message = (
            f"its pods are of {many(len(kinds) + unsampled, 'owner')}, more than are looked at: have "
            "spec.attach.podSelector select fewer, with a KVCacheTier for each"
        )
        return Refusal("TooManyOwners", message)
    for kind in kinds:
        if kind.obstacle and kind.left_alone:
            others = ", ".join(other.owner for other in kinds if other is not kind)
            beside = f"; {others} would get the tier if spec.attach.podSelector left {kind.owner} out"
            return Refusal(
                kind.left_alone.reason, f"{kind.owner}: {kind.left_alone.message}{beside if others else ''}"
            )
    return None


def _growth_refusal(
    plan: AttachPlan, observed: SelectionObservation, own: Sequence[SelectedPod], kinds: Sequence[_Kind]
) -> Refusal | None:
    """Why pods like those that were seen may not grow. A quota that let a rollout begin lets it end.

    While it goes on, pods are there twice.
    """
    rules = observed.terms.rules
    if not kinds:
        return None if observed.published else unmeasured_refusal(plan.namespace, rules)
    waiting = Counter(pod.kind for pod in own if not pod.attached_to)
    goes_on = observed.published and waiting and any(pod.attached_to for pod in own)
    if goes_on:
        rules = replace(rules, quotas=())
    growths = [
        Growth(kind.owner, kind.now, kind.then, waiting[kind.key]) for kind in kinds if kind.then is not None
    ]
    pods = sum(growth.pods for growth in growths)
    claims = claims_of(plan.disk, plan.disk_bytes, pods) if growths else None
    return growth_refusal(growths, rules, observed.nodes) or (
        claims_refusal(claims, rules, observed.storage_classes) if claims else None
    )


_LOOKED_AT_S: Final = 300.0
"""How often rules of the namespace are looked at that keep nothing from being published."""
_ASKED_AGAIN: Final = frozenset(
    {
        *("LimitRangeExceeded", "QuotaExceeded", "NotMeasured"),
        *("PolicyNotServed", "PolicyMissing", "NamespaceNotOptedIn"),
    }
)
"""Reasons that go by what is asked for and not watched."""
