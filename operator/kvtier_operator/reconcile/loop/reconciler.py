"""Reconciles one resource: observe, plan, apply, status; and reports what stopped that."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from kvtier_common.errors import KvtierError, MomentaryError
from kvtier_common.kubernetes.answers import NotFoundError, parse_document
from kvtier_common.kubernetes.client import METADATA_ONLY, Api
from kvtier_operator.planning.base.names import Component
from kvtier_operator.planning.base.owner_policy import OwnerPolicy
from kvtier_operator.planning.images import ImageSource
from kvtier_operator.planning.observed import EngineTokens
from kvtier_operator.reconcile.api_server import BY_NAME, KVCACHETIER, Kind, Ref
from kvtier_operator.reconcile.apply.apply import Applier, ApplyFailure, ApplyResult
from kvtier_operator.reconcile.apply.diff import diff, is_in_sync
from kvtier_operator.reconcile.apply.store_secret import make_store_secret
from kvtier_operator.reconcile.apply.writer import Writer, event, transitions
from kvtier_operator.reconcile.cache.live_object import LiveObject
from kvtier_operator.reconcile.cache.live_objects import LiveObjectCache, RouteCache
from kvtier_operator.reconcile.cache.pods import PodCache
from kvtier_operator.reconcile.cache.resources import CachedResource, Key, ResourceCache
from kvtier_operator.reconcile.cache.watches import Watches
from kvtier_operator.reconcile.facts.cached_plan import (
    CachedPlan,
    DesiredObject,
    EngineObservation,
    UntimedCondition,
    merge_observations,
    observation_from_status,
    owner_reference,
    unknown_condition,
    with_transition_time,
)
from kvtier_operator.reconcile.facts.objects import AutoscalerFacts, DeploymentFacts
from kvtier_operator.reconcile.loop.attachment import Attachments
from kvtier_operator.reconcile.loop.clock import Clock
from kvtier_operator.reconcile.loop.dispatch import LostWatchError, ReconcileResult
from kvtier_operator.reconcile.loop.plan_resource import (
    ClusterObservation,
    engine_hash_of,
    observe_cluster,
    plan_resource,
)
from kvtier_operator.reconcile.observe.engines import EngineObserver
from kvtier_operator.reconcile.observe.model_config_lookup import (
    ModelConfigLookup,
    asks_again,
    waits_for_model,
)
from kvtier_operator.reconcile.status.build import READY, StatusInput, build_status
from kvtier_operator.reconcile.status.router import GatewayPods, Route, UnservedKinds, unserved_kinds
from kvtier_operator.reconcile.status.store import StorePods

_LOG: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class Reconciler:
    """Reconciles one KVCacheTier at a time."""

    api: Api
    resources: ResourceCache
    live_objects: LiveObjectCache
    applier: Applier
    routes: RouteCache
    pods: PodCache
    watches: Watches
    models: ModelConfigLookup
    engines: EngineObserver
    clock: Clock
    images: ImageSource
    policy: OwnerPolicy
    attachments: Attachments

    async def reconcile(self, key: Key) -> ReconcileResult:
        """Brings a resource's objects and status to what its spec asks for; after a KvtierError try again."""
        resource = self.resources.get(key)
        if resource is None or not self.watches.has_synced(key.namespace):
            return ReconcileResult.UNCHANGED  # it is reconciled once the caches are filled
        _restore_from_status(resource)
        if resource.deleting or resource.state.namespace_terminating:
            return ReconcileResult.UNCHANGED
        if why := self.watches.lost_watch(key.namespace):
            raise LostWatchError(f"it is not known what there is: {why}")
        model = await self.models.of(key, resource)
        if model != resource.state.model:
            resource.state.model, resource.state.cached_plan = model, None
            _restore_from_status(resource)
        plan, desired = self._plan(key, resource)
        resource.state.cached_plan = plan
        result = ApplyResult()
        password = await self._make_password(key, resource, plan)
        kinds = unserved_kinds(self._kinds(key, resource, plan), self.watches.why_not)
        if not plan.rejected:
            applied = await self._apply(key, resource, plan, desired)
            if applied is None:
                return ReconcileResult.UNCHANGED
            result = applied
        result.failures += password
        resource.state.namespace_terminating = result.namespace_terminating
        self.engines.observe_in_background(
            key, resource, plan, self._live_deployment(key, resource, Component.ENGINE)
        )
        changed = await self._write_status(key, resource, plan, result, kinds)
        resource.state.reported_failure = ""
        latest = self.resources.get(key)
        if latest and (latest.generation, latest.refusal) != (resource.generation, resource.refusal):
            return await self.reconcile(key)  # the spec, or whether it fits into memory, changed meanwhile
        stopped = (result.failures or result.errors) and not result.namespace_terminating
        if stopped or waits_for_model(resource):
            return ReconcileResult.WAITING
        return ReconcileResult.CHANGED if changed or result.written else ReconcileResult.UNCHANGED

    def _plan(self, key: Key, resource: CachedResource) -> tuple[CachedPlan, Sequence[DesiredObject]]:
        """The plan, and its objects with bodies; no objects where the last plan still holds."""
        cluster, plan = self._observe(resource), resource.state.cached_plan
        if plan and plan.generation == resource.generation and cluster.is_planned_by(plan):
            return plan, ()
        return plan_resource(key, resource, cluster)

    def _observe(self, resource: CachedResource) -> ClusterObservation:
        return observe_cluster(resource, self.watches, self.images, self.policy)

    async def _apply(
        self, key: Key, resource: CachedResource, plan: CachedPlan, desired: Sequence[DesiredObject]
    ) -> ApplyResult | None:
        """Applies what is out of sync; None where the resource turned out to be gone."""
        owned = [*self.live_objects.of(key.namespace, resource.uid)]
        if is_in_sync(plan.desired, owned, self.watches.serves):
            return ApplyResult()
        desired = desired or plan_resource(key, resource, self._observe(resource))[1]
        work = diff(desired, owned, self.live_objects.get, self.watches.serves, resource.uid)
        for live_object, digest in work.found_in_sync:
            live_object.mark_synced(digest)
        if resource.state.was_complete and work.missing and not await self._is_there(key, resource):
            self.resources.delete(key, resource.uid)
            return None
        result = await self.applier.apply(work, resource.uid)
        resource.state.was_complete |= not result.failures
        return result

    async def _make_password(
        self, key: Key, resource: CachedResource, plan: CachedPlan
    ) -> list[ApplyFailure]:
        """Has a store's Secret be there before its pods, and again where they wait; what failed of it."""
        shards = self._shards(key, resource, plan)
        if plan.store_secret is None or (
            resource.state.store_secret_made and all(shard and shard.complete for shard in shards)
        ):
            return []
        failure = await make_store_secret(
            Writer(self.api), plan.store_secret, owner_reference(key.name, resource.uid)
        )
        resource.state.store_secret_made = failure is None
        return [] if failure is None else [failure]

    async def _is_there(self, key: Key, resource: CachedResource) -> bool:
        """Whether a resource whose objects disappear still exists: the watch may have missed its deletion."""
        try:
            answer = await self.api.get(KVCACHETIER.path(*key), accept=METADATA_ONLY)
        except NotFoundError:
            return False
        metadata = parse_document(answer)["metadata"]
        return bool(metadata["uid"] == resource.uid and "deletionTimestamp" not in metadata)

    async def _write_status(
        self, key: Key, resource: CachedResource, plan: CachedPlan, result: ApplyResult, kinds: UnservedKinds
    ) -> bool:
        """Writes the status where it differs; returns whether it was written."""
        latest = self.resources.get(key)
        if latest is None or latest.uid != resource.uid:
            return False
        previous = orjson.loads(latest.status)
        attachment = await self.attachments.of(key, plan, previous)
        if attachment is not None and attachment.tokens is not None:
            self._take_tokens(key, resource, plan, attachment.tokens)
        inputs = StatusInput(
            generation=resource.generation,
            plan=plan,
            engine=self._deployment(key, resource, Component.ENGINE),
            picker=self._deployment(key, resource, Component.PICKER),
            engine_pods_not_ready=self.pods.not_ready(*key, Component.ENGINE),
            picker_pods_not_ready=self.pods.not_ready(*key, Component.PICKER),
            failures=result.failures,
            kinds=kinds,
            now=self.clock.now(),
            way_in=self._gateway(key, resource, plan) or self._route(key, resource),
            asked_again=asks_again(resource),
            rejected_report=resource.state.rejected_report,
            autoscaler=self._autoscaler(key, resource, plan),
            store=self._store(key, resource, plan),
            attachment=attachment,
        )
        status = build_status(inputs, previous)
        if status == previous:
            return False
        try:
            document = await Writer(self.api).status(*key, resource.uid, status)
        except NotFoundError:
            self.resources.delete(key, resource.uid)
            return False
        self.resources.take_answer(document)
        await self._write_events(key, previous, document)
        return True

    def _take_tokens(
        self, key: Key, resource: CachedResource, plan: CachedPlan, tokens: EngineTokens
    ) -> None:
        """Has the next plan know what engines of others say, unless they only say it again."""
        told = EngineObservation(plan.engine_hash, tokens)
        merged = merge_observations(resource.state.observation, told)
        if merged != resource.state.observation:
            resource.state.observation = merged
            self.attachments.reconcile_in(key, 0.0)

    def _deployment(self, key: Key, resource: CachedResource, component: Component) -> DeploymentFacts | None:
        live_object = self._live_deployment(key, resource, component)
        return live_object.facts if live_object else None

    def _live_deployment(self, key: Key, resource: CachedResource, component: Component) -> LiveObject | None:
        return self._owned_object(resource, Ref("Deployment", key.namespace, f"{key.name}-{component.value}"))

    def _autoscaler(self, key: Key, resource: CachedResource, plan: CachedPlan) -> AutoscalerFacts | None:
        if plan.scaling is None:
            return None
        live_object = self._owned_object(
            resource, Ref(plan.scaling.scaler.value, key.namespace, plan.scaling.name)
        )
        return live_object.autoscaler if live_object else None

    def _route(self, key: Key, resource: CachedResource) -> Route | None:
        """The live route, not the desired one: beside a rejected spec the earlier one stays in use."""
        route, pool = (
            self._owned_object(resource, Ref(kind, *key)) for kind in ("HTTPRoute", "InferencePool")
        )
        if route is None:
            return None
        pool_parents = pool.parents if pool else ()
        return Route(str(key), route.parents, pool_parents, self.routes.hidden_by(*key))

    def _gateway(self, key: Key, resource: CachedResource, plan: CachedPlan) -> GatewayPods | None:
        """The desired one; beside a rejected spec the one that is there."""
        deployment = self._deployment(key, resource, Component.GATEWAY)
        name = f"{key.name}-{Component.GATEWAY.value}"
        desired = any(planned.ref == Ref("Deployment", key.namespace, name) for planned in plan.desired)
        if not desired and not (plan.rejected and deployment):
            return None
        return GatewayPods(deployment, self.pods.not_ready(*key, Component.GATEWAY))

    def _store(self, key: Key, resource: CachedResource, plan: CachedPlan) -> StorePods | None:
        """None where the plan has none: a rejected spec says nothing of the one before."""
        shards = self._shards(key, resource, plan)
        return StorePods(shards, self.pods.not_ready(*key, Component.STORE)) if shards else None

    def _shards(
        self, key: Key, resource: CachedResource, plan: CachedPlan
    ) -> tuple[DeploymentFacts | None, ...]:
        """Of each server of the store that the plan has; None for one that is not there yet."""
        named = f"{key.name}-{Component.STORE.value}-"
        refs = (planned.ref for planned in plan.desired)
        live_objects = (
            self._owned_object(resource, ref)
            for ref in refs
            if ref.kind == "Deployment" and ref.name.startswith(named)
        )
        return tuple(live_object.facts if live_object else None for live_object in live_objects)

    def _kinds(self, key: Key, resource: CachedResource, plan: CachedPlan) -> Iterable[Kind]:
        """Of the desired objects; what runs beside a rejected spec has a pool, or a gateway of its own."""
        if plan.desired or self._gateway(key, resource, plan):
            return dict.fromkeys(planned.kind for planned in plan.desired)
        return (BY_NAME["InferencePool"],)

    def _owned_object(self, resource: CachedResource, ref: Ref) -> LiveObject | None:
        live_object = self.live_objects.get(ref)
        return live_object if live_object and live_object.owner_uid == resource.uid else None

    async def _write_events(self, key: Key, previous: Mapping[str, Any], document: Mapping[str, Any]) -> None:
        """Events are best effort: what they say is in the status too."""
        for condition in transitions(previous.get("conditions", ()), document["status"]["conditions"]):
            body = event(condition, document["metadata"], self.clock.now())
            try:
                await Writer(self.api).event(key.namespace, body)
            except KvtierError as error:
                _LOG.debug("%s: the event was not taken: %s", key, error)


def _restore_from_status(resource: CachedResource) -> None:
    """Before the first plan: takes over what an earlier process of the operator wrote into the status."""
    state = resource.state
    if state.cached_plan is not None:
        return
    if state.observation is None:
        status, engine_hash = orjson.loads(resource.status), engine_hash_of(resource)
        state.observation = observation_from_status(status, resource.generation, engine_hash)


_UNREPORTED_FAILURES: Final = 5
"""So many momentary errors in a row are not reported: six seconds, with the queue's back-off."""


def _failed_round_condition(error: Exception) -> UntimedCondition:
    """Condition Ready with the error that stopped the reconciliation."""
    what = (
        str(error) if isinstance(error, KvtierError) else f"a bug in kvtier, {type(error).__name__}: {error}"
    )
    rest = "what runs goes on, the other conditions may be out of date; it is tried again"
    return unknown_condition(READY, "RoundFailed", f"the operator did not get to the end: {what}; {rest}")


@dataclass(frozen=True, slots=True)
class FailureReporter:
    """Reports a reconciliation that failed: in condition Ready, and by an Event."""

    writer: Writer
    resources: ResourceCache
    clock: Clock

    async def report(self, key: Key, error: Exception, failures: int) -> None:
        """Reports what stopped a reconciliation, once for as long as it is the same."""
        resource = self.resources.get(key)
        momentary = isinstance(error, MomentaryError)
        # such errors differ in a port or a time from try to try
        if resource is None or (
            momentary and (failures <= _UNREPORTED_FAILURES or resource.state.reported_failure)
        ):
            return
        ready, previous = _failed_round_condition(error), orjson.loads(resource.status)
        before = previous.get("conditions", ())
        condition = with_transition_time(ready, before, resource.generation, self.clock.now())
        others = (condition for condition in before if condition["type"] != ready.type)
        status = {**previous, "conditions": [*others, condition]}
        if status != previous:
            await self._write_status(key, resource, status)
        if resource.state.reported_failure != ready.message:
            resource.state.reported_failure = ready.message
            await self._write_event(key, resource, condition)

    async def _write_status(self, key: Key, resource: CachedResource, status: dict[str, object]) -> None:
        try:
            self.resources.take_answer(await self.writer.status(*key, resource.uid, status))
        except NotFoundError:
            self.resources.delete(key, resource.uid)
        except KvtierError as error:
            _LOG.warning("%s: nor could the status be written: %s", key, error)

    async def _write_event(self, key: Key, resource: CachedResource, condition: dict[str, object]) -> None:
        metadata = {**key._asdict(), "uid": resource.uid, "resourceVersion": str(resource.version)}
        try:
            await self.writer.event(key.namespace, event(condition, metadata, self.clock.now()))
        except KvtierError as error:
            _LOG.warning("%s: an Event about the %s was not taken: %s", key, KVCACHETIER.kind, error)
