"""Applies a diff: looks names up before it creates, applies wave by wave, prunes last."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from kvtier_common.errors import KvtierError
from kvtier_common.kubernetes.answers import InvalidObjectError, NamespaceTerminatingError, NotFoundError
from kvtier_operator.planning.objects.names import COMPONENT_LABEL, Component
from kvtier_operator.reconcile.api_server import AUTOSCALERS, RUNNING
from kvtier_operator.reconcile.apply.diff import Diff, removal_of_extra_keys
from kvtier_operator.reconcile.apply.ownership import OwnershipLookup
from kvtier_operator.reconcile.apply.writer import Writer
from kvtier_operator.reconcile.cache.live_object import LiveObject
from kvtier_operator.reconcile.cache.live_objects import LiveObjectCache
from kvtier_operator.reconcile.facts.cached_plan import DesiredObject
from kvtier_operator.reconcile.observability import API_ERRORS

_IMMUTABLE: Final = "field is immutable when `immutable` is set"
"""Said of a ConfigMap that somebody set so (k8s.io/kubernetes, pkg/apis/core/validation/validation.go)."""
_NAMESPACE_TERMINATING: Final = "NamespaceTerminating"


@dataclass(frozen=True, slots=True)
class ApplyFailure:
    """Why one object could not be applied.

    Attributes:
        component: Whose object it is: EnginesReady reports the engines' failures, RouterReady all others.
        message: One line, naming the object and what to do.
    """

    component: Component
    reason: str
    message: str


@dataclass(slots=True)
class ApplyResult:
    """What was written, and what was not.

    Attributes:
        written: Number of objects written or deleted.
        failures: Objects that could not be applied, and why.
        namespace_terminating: Whether the namespace is being deleted, so that nothing can be created there.
    """

    written: int = 0
    failures: list[ApplyFailure] = field(default_factory=list)
    errors: list[KvtierError] = field(default_factory=list)
    namespace_terminating: bool = False

    def add_error(
        self, desired: DesiredObject, error: KvtierError, failure: ApplyFailure | None = None
    ) -> None:
        """Adds the error of one object, and what a condition says of it where that is not the error alone."""
        API_ERRORS.labels(type(error).__name__.removesuffix("Error")).inc()
        self.errors.append(error)
        if not isinstance(error, NamespaceTerminatingError):
            self.failures.append(failure or _failure(desired, error))
        elif not self.namespace_terminating:
            self.namespace_terminating = True
            self.failures.append(_namespace_terminating_failure(desired.ref.namespace))


class Applier:
    """Applies the desired objects of any resource."""

    def __init__(self, writer: Writer, live_objects: LiveObjectCache, ownership: OwnershipLookup) -> None:
        self._ownership = ownership
        self._writer = writer
        self._live_objects = live_objects

    async def apply(self, diff: Diff, owner_uid: str) -> ApplyResult:
        """Applies what is missing or out of sync, then prunes.

        No workload is changed while an object that it refers to cannot be applied, and nothing is while the
        server would not take a workload with its pod template: never half a change.
        """
        result = ApplyResult()
        creatable, taken = await self._look_up(diff.missing, owner_uid, result)
        taken = (*diff.owned_by_others, *taken)
        result.failures += [_name_taken(each) for each in taken]
        if any(each.kind.wave <= RUNNING for each in taken) or result.errors:
            return result
        to_apply = sorted((*creatable, *diff.out_of_sync), key=lambda each: each.kind.wave)
        await asyncio.gather(*(self._try(each, result) for each in to_apply if each.template))
        if result.errors:
            return result
        # two that scale one Deployment fight, and KEDA refuses one beside another
        scaled_by_others = [each for each in diff.to_prune if each.ref.kind in AUTOSCALERS]
        await self._prune(scaled_by_others, result)
        if result.errors:
            return result
        for wave, members in groupby(to_apply, key=lambda each: each.kind.wave):
            await asyncio.gather(*(self._apply(each, result) for each in members))
            if result.errors and wave <= RUNNING:
                return result
        if not result.errors:
            await self._prune([each for each in diff.to_prune if each not in scaled_by_others], result)
        return result

    async def _look_up(
        self, missing: Sequence[DesiredObject], owner_uid: str, result: ApplyResult
    ) -> tuple[tuple[DesiredObject, ...], tuple[DesiredObject, ...]]:
        """Which of the missing objects can be created, and which names belong to other people's objects."""
        owners = await asyncio.gather(*(self._owner(each, result) for each in missing))
        free = tuple(each for each, owner in zip(missing, owners, strict=True) if owner in (None, owner_uid))
        return free, tuple(each for each in missing if each not in free)

    async def _owner(self, desired: DesiredObject, result: ApplyResult) -> str | None:
        """Uid of the owner of the object of that name; empty: it has none; None: the name is free."""
        try:
            return await self._ownership.owner(desired.ref)
        except KvtierError as error:
            result.add_error(desired, error)
            return None

    async def _try(self, desired: DesiredObject, result: ApplyResult) -> None:
        try:
            await self._writer.try_to_apply(desired)
        except InvalidObjectError as error:
            result.add_error(desired, error, _template_failure(desired, error))
        except KvtierError as error:
            result.add_error(desired, error)

    async def _apply(self, desired: DesiredObject, result: ApplyResult) -> None:
        try:
            document = await self._write(desired)
        except KvtierError as error:
            result.add_error(desired, error)
            return
        result.written += 1
        self._live_objects.take_answer(desired.kind, document, desired.digest)

    async def _write(self, desired: DesiredObject) -> dict[str, Any]:
        """Applies one object, with what an apply alone cannot do before and after it."""
        body = desired.body or {}
        await self._hand_over(desired)
        try:
            document = await self._writer.apply(desired)
        except InvalidObjectError as error:
            uid = body["metadata"].get("uid")
            if _IMMUTABLE not in str(error) or desired.kind.kind != "ConfigMap" or uid is None:
                raise
            await self._writer.delete(desired.ref, uid)
            document = await self._writer.apply(desired.without_uid())
        if patch := removal_of_extra_keys(document, body):
            precondition = {"metadata": {"uid": document["metadata"]["uid"]}}
            return await self._writer.merge(desired.ref, patch | precondition)
        return document

    async def _hand_over(self, desired: DesiredObject) -> None:
        """Before the number of pods is no longer applied: otherwise it would fall to one."""
        live_object = self._live_objects.get(desired.ref)
        if live_object and live_object.facts and live_object.holds_replicas and desired.leaves_replicas:
            # of no pods an autoscaler makes none: Kubernetes takes 0 for "do not scale"
            replicas = max(1, live_object.facts.desired_replicas)
            await self._writer.hand_over_replicas(desired, live_object.uid, replicas)

    async def _prune(self, unwanted: Iterable[LiveObject], result: ApplyResult) -> None:
        for live_object in unwanted:
            try:
                await self._writer.delete(live_object.ref, live_object.uid)
            except NotFoundError:
                pass
            except KvtierError as error:
                result.errors.append(error)
                if live_object.ref.kind in AUTOSCALERS:
                    result.failures.append(_still_scales(live_object, error))
                continue
            result.written += 1


def _component(desired: DesiredObject) -> Component:
    return Component((desired.body or {})["metadata"]["labels"][COMPONENT_LABEL])


def _failure(desired: DesiredObject, error: KvtierError) -> ApplyFailure:
    reason = "QuotaExceeded" if "exceeded quota" in str(error) else type(error).__name__.removesuffix("Error")
    return ApplyFailure(_component(desired), reason, f"{desired.ref} cannot be written: {error}")


def _still_scales(live_object: LiveObject, error: KvtierError) -> ApplyFailure:
    return ApplyFailure(
        Component.AUTOSCALER,
        type(error).__name__.removesuffix("Error"),
        f"{live_object.ref} cannot be deleted, and nothing is changed before it is: {error}",
    )


def _template_failure(desired: DesiredObject, error: InvalidObjectError) -> ApplyFailure:
    reason = " ".join(str(error).split())  # several faults are several lines
    return ApplyFailure(
        _component(desired),
        "PodTemplateInvalid",
        f"{desired.template}: the API server does not take {desired.ref} with it, and nothing was changed: "
        f"{reason}",
    )


def _namespace_terminating_failure(namespace: str) -> ApplyFailure:
    return ApplyFailure(
        Component.ENGINE,
        _NAMESPACE_TERMINATING,
        f"namespace {namespace} is being deleted: nothing more is made in it",
    )


def _name_taken(desired: DesiredObject) -> ApplyFailure:
    return ApplyFailure(
        _component(desired),
        "NameTaken",
        f"{desired.ref} is there already and not this resource's: it is left alone; delete or rename it, or "
        "give the KVCacheTier another name",
    )
