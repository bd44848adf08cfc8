"""Applies a diff: looks names up before it creates, applies wave by wave, prunes last.

Applying to someone else's object would change and adopt it. The API has no apply that only creates, and no
apply can remove fields from an object that a POST created (managedFields tell `Update` and `Apply` apart).
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from kvtier_common.errors import KvtierError, MomentaryError, TooLargeError
from kvtier_common.kubernetes.answers import (
    InvalidObjectError,
    NamespaceTerminatingError,
    NotFoundError,
    ServerError,
    parse_document,
)
from kvtier_common.kubernetes.client import METADATA_LIST, Api
from kvtier_operator.planning.base.names import COMPONENT_LABEL, MANAGED_BY, MANAGED_BY_LABEL, Component
from kvtier_operator.reconcile.api_server import AUTOSCALERS, BY_NAME, RUNNING, Ref
from kvtier_operator.reconcile.apply.diff import Diff, removal_of_extra_keys
from kvtier_operator.reconcile.apply.writer import Writer
from kvtier_operator.reconcile.cache.live_object import LiveObject, is_orphaned, owner_of
from kvtier_operator.reconcile.cache.live_objects import LiveObjectCache
from kvtier_operator.reconcile.facts.cached_plan import DesiredObject
from kvtier_operator.reconcile.observability import API_ERRORS
from kvtier_operator.reconcile.settings import OwnershipTimings

_OTHERS: Final = f"{MANAGED_BY_LABEL}!={MANAGED_BY}"
_FEW: Final = 100
"""Up to so many objects of a kind in a namespace are listed at once; of more each name is asked for."""
_LIST_BYTES: Final = 512 << 10
"""Of that list: annotations may have 256 KiB each, and many such lists are asked for at a time."""
_ONE_BYTES: Final = 4 << 20
Owners = Mapping[str, str]
_IMMUTABLE: Final = "field is immutable when `immutable` is set"
"""Said of a ConfigMap that somebody set so (k8s.io/kubernetes, pkg/apis/core/validation/validation.go)."""


@dataclass(slots=True)
class OwnershipLookup:
    """Looks up the owners of objects; one list answers for all names of a kind in a namespace."""

    api: Api
    timings: OwnershipTimings = field(default_factory=OwnershipTimings)
    _lists: dict[tuple[str, str], tuple[float, asyncio.Task[Owners | None]]] = field(default_factory=dict)

    async def owner(self, ref: Ref) -> str | None:
        """Uid of the controller of the object with this name; empty for an object without a controller.

        None where there is no such object, or one that kvtier applied and that lost its owner. Nothing of a
        resource is created before all its names are known to be free, so one failed request would hold up
        all of them: each request is tried several times.
        """
        failures = 0
        while True:
            try:
                return await self._owner_once(ref)
            except MomentaryError as error:
                failures += 1
                asked_to_wait = isinstance(error, ServerError) and error.retry_after_s
                # Then it comes back by the queue: nobody else's turn is held up meanwhile.
                if failures == self.timings.tries or asked_to_wait:
                    raise
                await asyncio.sleep(self.timings.retry.delay_s(failures))

    async def _owner_once(self, ref: Ref) -> str | None:
        owners = await self._list_owners(ref)
        return await self._single_owner(ref) if owners is None else owners.get(ref.name)

    async def _list_owners(self, ref: Ref) -> Owners | None:
        """Owners by name, from a list that is at most a second old; None where the list is too long."""
        now, key = asyncio.get_running_loop().time(), (ref.kind, ref.namespace)
        known = self._lists.get(key)
        if known is None or now - known[0] > self.timings.fresh_s or _has_failed(known[1]):
            self._forget(now)
            known = self._lists[key] = (now, asyncio.create_task(self._list_of_kind(*key)))
        return await asyncio.shield(known[1])

    async def _list_of_kind(self, kind: str, namespace: str) -> Owners | None:
        query = {"labelSelector": _OTHERS, "limit": str(_FEW)}
        path = BY_NAME[kind].path(namespace)
        try:
            page = parse_document(await self.api.get(path, query, METADATA_LIST, most_bytes=_LIST_BYTES))
        except TooLargeError:
            return None
        if page["metadata"].get("continue"):
            return None
        others = (item["metadata"] for item in page["items"] or ())
        return {other["name"]: owner_of(other)[0] for other in others if not is_orphaned(other)}

    async def _single_owner(self, ref: Ref) -> str | None:
        # any version that the server has at hand: what is not kvtier's was there before
        query = {"fieldSelector": f"metadata.name={ref.name}", "resourceVersion": "0"}
        path = BY_NAME[ref.kind].path(ref.namespace)
        page = parse_document(await self.api.get(path, query, METADATA_LIST, most_bytes=_ONE_BYTES))
        others = (item["metadata"] for item in page["items"] or ())
        return next((owner_of(other)[0] for other in others if not is_orphaned(other)), None)

    def _forget(self, now: float) -> None:
        for key in [key for key, (at, _) in self._lists.items() if now - at > self.timings.fresh_s]:
            del self._lists[key]


def _has_failed(task: asyncio.Task[Owners | None]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


@dataclass(frozen=True, slots=True)
class ApplyFailure:
    """Why one object could not be applied."""

    # whose object it is: EnginesReady reports the engines' failures, RouterReady all others
    component: Component
    reason: str
    message: str  # one line, naming the object and what to do


@dataclass(slots=True)
class ApplyResult:
    """What was written, and what was not."""

    written: int = 0  # number of objects written or deleted
    failures: list[ApplyFailure] = field(default_factory=list)  # objects that could not be applied, and why
    errors: list[KvtierError] = field(default_factory=list)
    # whether the namespace is being deleted, so that nothing can be created there
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
            why = f"namespace {desired.ref.namespace} is being deleted: nothing more is made in it"
            self.failures.append(ApplyFailure(Component.ENGINE, "NamespaceTerminating", why))


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
        result.failures += [_name_conflict(holder) for holder in taken]
        if any(holder.kind.wave <= RUNNING for holder in taken) or result.errors:
            return result
        to_apply = sorted((*creatable, *diff.out_of_sync), key=lambda change: change.kind.wave)
        await asyncio.gather(*(self._try(change, result) for change in to_apply if change.template))
        if result.errors:
            return result
        # two that scale one Deployment fight, and KEDA refuses one beside another
        scaled_by_others = [stale for stale in diff.to_prune if stale.ref.kind in AUTOSCALERS]
        await self._prune(scaled_by_others, result)
        if result.errors:
            return result
        for wave, members in groupby(to_apply, key=lambda change: change.kind.wave):
            await asyncio.gather(*(self._apply(member, result) for member in members))
            if result.errors and wave <= RUNNING:
                return result
        if not result.errors:
            await self._prune([stale for stale in diff.to_prune if stale not in scaled_by_others], result)
        return result

    async def _look_up(
        self, missing: Sequence[DesiredObject], owner_uid: str, result: ApplyResult
    ) -> tuple[tuple[DesiredObject, ...], tuple[DesiredObject, ...]]:
        """Which of the missing objects can be created, and which names belong to other people's objects."""
        owners = await asyncio.gather(*(self._owner(absent, result) for absent in missing))
        free = tuple(
            absent for absent, owner in zip(missing, owners, strict=True) if owner in (None, owner_uid)
        )
        return free, tuple(absent for absent in missing if absent not in free)

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


def _name_conflict(desired: DesiredObject) -> ApplyFailure:
    return ApplyFailure(
        _component(desired),
        "NameTaken",
        f"{desired.ref} is there already and not this resource's: it is left alone; delete or rename it, or "
        "give the KVCacheTier another name",
    )
