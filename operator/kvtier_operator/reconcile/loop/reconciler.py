"""Reconciles one resource: observe, plan, apply, status."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from kvtier_operator.errors import KvtierError
from kvtier_operator.planning.objects.names import Component
from kvtier_operator.planning.observed import NOTHING_FOUND, Observed
from kvtier_operator.planning.pod.image_source import ImageSource
from kvtier_operator.planning.policy.limits import OwnerPolicy
from kvtier_operator.reconcile.api_server.client import METADATA_ONLY, Api
from kvtier_operator.reconcile.api_server.errors import NotFoundError, UnseenError
from kvtier_operator.reconcile.api_server.kinds import BY_NAME, TIER, Ref
from kvtier_operator.reconcile.apply.apply import NAMESPACE_TERMINATING, Applier, Outcome
from kvtier_operator.reconcile.apply.desired import Wanted
from kvtier_operator.reconcile.apply.diff import diff, is_settled
from kvtier_operator.reconcile.apply.events import event, transitions
from kvtier_operator.reconcile.apply.writer import Writer
from kvtier_operator.reconcile.cache.live_object import Child
from kvtier_operator.reconcile.cache.live_objects import Children
from kvtier_operator.reconcile.cache.pods import Pods
from kvtier_operator.reconcile.cache.resources import Key, Tier, Tiers
from kvtier_operator.reconcile.cache.routes import Routes
from kvtier_operator.reconcile.cache.watches import Watches
from kvtier_operator.reconcile.facts.deployment import DeploymentFacts
from kvtier_operator.reconcile.loop.cached_plan import Planned
from kvtier_operator.reconcile.loop.clock import Clock
from kvtier_operator.reconcile.loop.dispatch import Result
from kvtier_operator.reconcile.loop.planning import View, plan_tier
from kvtier_operator.reconcile.observe.engine_observation import from_status, hash_engine
from kvtier_operator.reconcile.observe.engine_observer import Engines
from kvtier_operator.reconcile.observe.model_configs import ModelConfigs, waits
from kvtier_operator.reconcile.status.build import StatusInput, build_status
from kvtier_operator.reconcile.status.route_state import Route
from kvtier_operator.reconcile.status.unserved_kinds import Unserved, unserved

_LOG: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class Reconciler:
    """Reconciles any of the resources.

    Attributes:
        api: The API server.
        tiers: The resources.
        children: Their objects.
        applier: Writes them.
        routes: The HTTPRoutes beside theirs.
        pods: Their pods.
        watches: What the cluster serves, and its nodes.
        models: Looks for the configurations of their models.
        engines: Asks running engines what their tiers hold.
        clock: The time of day.
        images: Where this cluster gets the images from that no resource names.
        policy: What its owner lets resources ask for.
    """

    api: Api
    tiers: Tiers
    children: Children
    applier: Applier
    routes: Routes
    pods: Pods
    watches: Watches
    models: ModelConfigs
    engines: Engines
    clock: Clock
    images: ImageSource
    policy: OwnerPolicy

    async def reconcile(self, key: Key) -> Result:
        """Brings objects and status of one resource to where they should be.

        Raises:
            KvtierError: The API server did not take the status, or does not let us see what there is; trying
                again may help.
        """
        tier = self.tiers.get(key)
        if tier is None or not self.watches.has_seen(key.namespace):
            return Result.UNCHANGED  # what is there is not known: it comes again when it is
        if tier.deleting or _namespace_ends(tier):
            return Result.UNCHANGED
        if why := self.watches.blind(key.namespace):
            raise UnseenError(f"it is not known what there is: {why}")
        model = await self.models.of(key, tier)
        if model != tier.memory.model:
            tier.memory.model, tier.memory.planned = model, None
        planned, bodies = self._plan(key, tier)
        outcome = Outcome()
        # what runs beside a rejected spec has at least a pool
        wanted_kinds = dict.fromkeys(each.kind for each in planned.wanted) or (BY_NAME["InferencePool"],)
        kinds = unserved(wanted_kinds, self.watches.why_not)
        if not planned.rejected:
            done = await self._objects(key, tier, planned, bodies)
            if done is None:
                return Result.UNCHANGED
            outcome = done
        tier.memory.namespace_ends = outcome.namespace_ends
        self.engines.look(key, tier, planned, self._deployment_child(key, tier, Component.ENGINE))
        changed = await self._status(key, tier, planned, outcome, kinds)
        tier.memory.told = ""
        latest = self.tiers.get(key)
        if latest and (latest.generation, latest.refusal) != (tier.generation, tier.refusal):
            return await self.reconcile(key)  # the spec, or whether there is room for it, changed meanwhile
        stopped = (outcome.failures or outcome.errors) and not outcome.namespace_ends
        if stopped or waits(tier):
            return Result.WAITING
        return Result.CHANGED if changed or outcome.written else Result.UNCHANGED

    def _plan(self, key: Key, tier: Tier) -> tuple[Planned, Sequence[Wanted]]:
        """The plan of this generation and surroundings; objects with bodies only if it was made just now."""
        view, known = self._view(key, tier), tier.memory.planned
        if known and (
            known.generation,
            known.nodes_version,
            known.namespace_version,
            known.engine_tokens,
            known.engine_findings,
        ) == (
            tier.generation,
            view.nodes_version,
            view.namespace_version,
            view.observed.engine,
            view.engine_findings,
        ):
            return known, ()
        planned, bodies = plan_tier(key, tier, view)
        tier.memory.planned = planned
        return planned, bodies

    def _view(self, key: Key, tier: Tier) -> View:
        nodes, bounds, memory = self.watches.nodes, self.watches.bounds, tier.memory
        known = memory.planned
        engine = (
            known.engine_hash if known and known.generation == tier.generation else hash_engine(tier.spec)
        )
        if known is None and memory.sighting is None:
            memory.sighting = from_status(orjson.loads(tier.status), tier.generation, engine)
        seen = memory.sighting if memory.sighting and memory.sighting.engine_hash == engine else None
        model = memory.model
        observed = Observed(
            model_config=model.parsed if model else None,
            model_config_source=model.source if model else "",
            model_config_missing=model.missing if model else "",
            nodes=nodes.all,
            engine=seen.tokens if seen else None,
            images=self.images,
            policy=self.policy,
        )
        findings = seen.findings if seen else NOTHING_FOUND
        return View(
            observed=observed,
            nodes_version=nodes.version,
            engine_hash=engine,
            nodes_unseen=self.watches.nodes_unseen,
            engine_findings=findings,
            namespace=bounds.of(key.namespace),
            namespace_version=bounds.version(key.namespace),
        )

    async def _objects(
        self, key: Key, tier: Tier, planned: Planned, bodies: Sequence[Wanted]
    ) -> Outcome | None:
        """Applies what differs; None where the resource turned out to be gone."""
        owned = [*self.children.of(tier.uid)]
        if is_settled(planned.wanted, owned, self.watches.serves):
            return Outcome()
        wanted = bodies or plan_tier(key, tier, self._view(key, tier))[1]
        work = diff(wanted, owned, self.children.get, self.watches.serves, tier.uid)
        if tier.memory.complete and work.missing and not await self._is_there(key, tier):
            self.tiers.gone(key, tier.uid)
            return None
        outcome = await self.applier.carry_out(work, tier.uid)
        tier.memory.complete |= not outcome.failures
        return outcome

    async def _is_there(self, key: Key, tier: Tier) -> bool:
        """Whether a resource whose objects vanish is still there: its deletion may have gone unseen."""
        try:
            found = await self.api.get(TIER.path(*key), accept=METADATA_ONLY)
        except NotFoundError:
            return False
        metadata = orjson.loads(found)["metadata"]
        return bool(metadata["uid"] == tier.uid and "deletionTimestamp" not in metadata)

    async def _status(
        self, key: Key, tier: Tier, planned: Planned, outcome: Outcome, kinds: Unserved
    ) -> bool:
        """Writes the status if it is not what it should be; whether it did."""
        latest = self.tiers.get(key)
        if latest is None or latest.uid != tier.uid:
            return False
        previous = orjson.loads(latest.status)
        given = StatusInput(
            generation=tier.generation,
            planned=planned,
            engine=self._deployment(key, tier, Component.ENGINE),
            picker=self._deployment(key, tier, Component.PICKER),
            engine_troubles=self.pods.troubles(*key, Component.ENGINE),
            picker_troubles=self.pods.troubles(*key, Component.PICKER),
            failures=outcome.failures,
            kinds=kinds,
            now=self.clock.now(),
            route=self._route(key, tier),
            not_taken=tier.memory.not_taken,
        )
        status = build_status(given, previous)
        if status == previous:
            return False
        try:
            document = await Writer(self.api).status(*key, tier.uid, status)
        except NotFoundError:
            self.tiers.gone(key, tier.uid)
            return False
        self.tiers.written(document)
        await self._tell(key, previous, document)
        return True

    def _deployment(self, key: Key, tier: Tier, component: Component) -> DeploymentFacts | None:
        child = self._deployment_child(key, tier, component)
        return child.facts if child else None

    def _deployment_child(self, key: Key, tier: Tier, component: Component) -> Child | None:
        return self._own(tier, Ref("Deployment", key.namespace, f"{key.name}-{component.value}"))

    def _route(self, key: Key, tier: Tier) -> Route | None:
        """As it is, not as it is wanted: beside a rejected spec the one of before goes on."""
        route, pool = (self._own(tier, Ref(kind, *key)) for kind in ("HTTPRoute", "InferencePool"))
        if route is None:
            return None
        pool_parents = pool.parents if pool else ()
        return Route(str(key), route.parents, pool_parents, self.routes.hidden_by(*key))

    def _own(self, tier: Tier, ref: Ref) -> Child | None:
        child = self.children.get(ref)
        return child if child and child.owner_uid == tier.uid else None

    async def _tell(self, key: Key, previous: Mapping[str, Any], document: Mapping[str, Any]) -> None:
        """Events are best effort: what they say stands in the status too."""
        for condition in transitions(previous.get("conditions", ()), document["status"]["conditions"]):
            told = event(condition, document["metadata"], self.clock.now())
            try:
                await Writer(self.api).event(key.namespace, told)
            except KvtierError as error:
                _LOG.debug("%s: the event was not taken: %s", key, error)


def _namespace_ends(tier: Tier) -> bool:
    """Whether it was found, or said in the status by an earlier process, that nothing can be made."""
    memory = tier.memory
    if memory.planned is None and not memory.namespace_ends:
        conditions = orjson.loads(tier.status).get("conditions", ())
        memory.namespace_ends = any(each["reason"] == NAMESPACE_TERMINATING for each in conditions)
    return memory.namespace_ends
