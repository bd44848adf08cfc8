"""Plans a resource from what is observed: its desired objects, and what the status says of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.api.resource import KVCacheTier, RouterEntries, RouterStatus, Source, TierStatus
from kvtier_operator.api.spec.tiers.cpu import Policy
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.attach.picker import (
    PUBLISHED_VERSION,
    others_picker,
    published_picker_config,
)
from kvtier_operator.planning.attach.plan import plan_attach
from kvtier_operator.planning.base.names import Component, Names, content_hash
from kvtier_operator.planning.base.owner_policy import OwnerPolicy
from kvtier_operator.planning.base.tier_plan import TierPlan
from kvtier_operator.planning.cluster.nodes_fit import nodes_fit
from kvtier_operator.planning.cluster.storage import Namespace, StorageClass, storage_verdicts
from kvtier_operator.planning.images import ImageSource
from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.objects.store import store_secret
from kvtier_operator.planning.observed import EngineFindings, Observed, PrefixFindings
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.pod_template.template import pod_templates
from kvtier_operator.planning.router.router_plan import RouterPlan
from kvtier_operator.planning.scaling import scaling_of
from kvtier_operator.planning.tiers.capacity import most_pinned_bytes
from kvtier_operator.reconcile.cache.resources import CachedResource, Key
from kvtier_operator.reconcile.cache.watches import NOT_INSTALLED, Watches
from kvtier_operator.reconcile.facts.cached_plan import (
    CachedPlan,
    DesiredObject,
    desired_objects,
    hash_engine,
)
from kvtier_operator.reconcile.status.plan import (
    NO_BUDGET,
    NO_POD,
    accepted_condition,
    attach_accepted_condition,
    budget_fits,
    nodes_fit_condition,
    nodes_not_seen_condition,
    not_valid,
)
from kvtier_scorer.config.model import PREFIX_SCORERS, PickerConfig


@dataclass(frozen=True, slots=True)
class ClusterObservation:
    """What is observed of the cluster for one plan."""

    observed: Observed
    nodes_version: int  # version of the node cache that `observed` was read from
    engine_hash: str
    nodes_unknown: str = ""  # why the nodes are not known; empty where they are
    # what a running engine reported of its tiers beside their sizes
    engine_findings: EngineFindings = field(default_factory=dict)
    # what it reported of the resource's prefixes, by their names
    prefix_findings: Mapping[str, PrefixFindings] = field(default_factory=dict)
    storage_classes: tuple[StorageClass, ...] | None = None  # the cluster's; None where they are not known
    storage_version: int = 0  # version of the cache that they were read from

    @property
    def in_plan(self) -> dict[str, Any]:
        """What a plan keeps of it, by the names of the plan's fields."""
        return {
            "nodes_version": self.nodes_version,
            "storage_version": self.storage_version,
            "engine_hash": self.engine_hash,
            "engine_tokens": self.observed.engine,
            "engine_findings": self.engine_findings,
            "prefix_findings": self.prefix_findings,
            "serves_scaled_objects": self.observed.serves_scaled_objects,
        }

    def is_planned_by(self, plan: CachedPlan) -> bool:
        """Whether a plan of the same generation was made from the same observation."""
        return all(getattr(plan, name) == value for name, value in self.in_plan.items())


def engine_hash_of(resource: CachedResource) -> str:
    """Hash of the part of the spec that engines are started with, computed once a generation."""
    plan = resource.state.cached_plan
    if plan and plan.generation == resource.generation:
        return plan.engine_hash
    return hash_engine(resource.spec)


def observe_cluster(
    resource: CachedResource, watches: Watches, images: ImageSource, policy: OwnerPolicy
) -> ClusterObservation:
    """Reads from the caches what a plan of the resource depends on."""
    nodes, classes, state = watches.nodes, watches.storage_classes, resource.state
    engine_hash = engine_hash_of(resource)
    is_current = state.observation is not None and state.observation.engine_hash == engine_hash
    engine = state.observation if is_current else None
    model = state.model
    return ClusterObservation(
        observed=Observed(
            model_config=model.parsed if model else None,
            model_config_source=model.source if model else "",
            model_config_missing=model.missing if model else "",
            nodes=nodes.all,
            engine=engine.tokens if engine else None,
            images=images,
            policy=policy,
            serves_scaled_objects=watches.why_not("ScaledObject") != NOT_INSTALLED,
        ),
        nodes_version=nodes.version,
        engine_hash=engine_hash,
        nodes_unknown=watches.nodes_unknown,
        engine_findings=engine.findings if engine else {},
        prefix_findings=engine.prefixes if engine else {},
        storage_classes=classes.all,
        storage_version=classes.version,
    )


def plan_resource(
    key: Key, resource: CachedResource, cluster: ClusterObservation
) -> tuple[CachedPlan, tuple[DesiredObject, ...]]:
    """What to keep of a resource's plan, and its desired objects; none where the spec is rejected."""
    if resource.refusal:
        refused = InvalidInputError(str(key), Problem("spec", resource.refusal))
        return _not_valid(refused, resource.generation, cluster), ()
    try:
        parsed = parse_resource(orjson.loads(resource.spec), str(key))
        if parsed.spec.attach is not None:
            return _attached(parsed, resource.uid, cluster)
        plan = make_plan(parsed, cluster.observed)
    except InvalidInputError as error:
        return _not_valid(_with_source(error, cluster), resource.generation, cluster), ()
    templates = pod_templates(parsed.spec)
    desired: tuple[DesiredObject, ...] = ()
    if not plan.rejected:
        desired = desired_objects(build_objects(plan), name=key.name, uid=resource.uid, templates=templates)
    nodes = nodes_not_seen_condition(cluster.nodes_unknown)
    if not cluster.nodes_unknown:
        nodes = nodes_fit_condition(nodes_fit(plan, cluster.observed.nodes or ()))
    cached = CachedPlan(
        generation=resource.generation,
        rejected=plan.rejected,
        desired=tuple(child.without_body() for child in desired),
        accepted=accepted_condition(plan),
        budget_fits=budget_fits(plan, storage_verdicts(plan, Namespace(cluster.storage_classes))),
        nodes_fit=nodes,
        most_tokens=plan.most_tokens,
        most_pinned_bytes=_most_pinned_bytes(plan),
        engine_port=plan.engine.port,
        prefixes=() if plan.rejected else tuple(prefix.name for prefix in parsed.spec.prefixes),
        tiers={} if plan.rejected else _tiers(plan, cluster.engine_findings),
        router={} if plan.rejected else _router(plan),
        selector="" if plan.rejected else _selector(plan),
        startup_s=plan.budget.fetch_s + plan.budget.startup_s,
        scaling=None if plan.rejected else scaling_of(plan.resource, plan.scaler),
        store_secret=None if plan.rejected else store_secret(plan),
        **cluster.in_plan,
    )
    return cached, desired


def _attached(
    resource: KVCacheTier, uid: str, cluster: ClusterObservation
) -> tuple[CachedPlan, tuple[DesiredObject, ...]]:
    """The plan for pods that others own; of its own there is what their endpoint picker should know."""
    planned = others_picker(resource, cluster.observed, PUBLISHED_VERSION)
    objects = [published_picker_config(resource, planned)] if planned else []
    desired = desired_objects(objects, name=resource.metadata.name, uid=uid)
    plan = CachedPlan(
        generation=resource.metadata.generation or 0,
        rejected=False,
        desired=tuple(child.without_body() for child in desired),
        accepted=attach_accepted_condition(resource.spec),
        budget_fits=NO_BUDGET,
        nodes_fit=NO_POD,
        router=_others_router(resource, planned) if planned else {},
        attach=plan_attach(resource, cluster.observed),
        **cluster.in_plan,
    )
    return plan, desired


def _most_pinned_bytes(plan: Plan) -> int:
    engine = plan.resource.spec.engine
    return most_pinned_bytes(plan.tiers, engine.ranks)


def _with_source(error: InvalidInputError, cluster: ClusterObservation) -> InvalidInputError:
    """The same error; one of a model's configuration says where that is."""
    source = cluster.observed.model_config_source
    if not source or error.source != source:
        return error
    return InvalidInputError(source, *(Problem("", f"{source}: {problem}") for problem in error.problems))


def _not_valid(error: InvalidInputError, generation: int, cluster: ClusterObservation) -> CachedPlan:
    return CachedPlan(
        generation=generation,
        rejected=True,
        desired=(),
        accepted=not_valid(error.problems),
        budget_fits=NO_BUDGET,
        nodes_fit=NO_POD,
        **cluster.in_plan,
    )


def _selector(plan: Plan) -> str:
    labels = Names.of(plan).selector(Component.ENGINE)
    return ",".join(f"{name}={labels[name]}" for name in sorted(labels))


def _tiers(plan: Plan, findings: EngineFindings) -> dict[str, Any]:
    tiers = {tier.label: _tier(planned) for tier, planned in plan.tiers.by_tier.items()}
    if plan.tiers.observed_block_tokens is not None and "gpu" in tiers:
        tiers["gpu"] |= {"blockTokens": plan.tiers.observed_block_tokens}
    most_pinned = _most_pinned_bytes(plan)
    asks_for_locking = plan.resource.spec.tiers.cpu.memlock.policy is not Policy.NEVER
    for tier in plan.tiers.by_tier.keys() & findings.keys():
        pinned_bytes, pays = findings[tier].pinned_bytes, findings[tier].pays
        if pinned_bytes is not None and pinned_bytes <= most_pinned and asks_for_locking:
            tiers[tier.label] |= {"pinnedBytes": pinned_bytes}
        if pays is not None:
            tiers[tier.label] |= {"pays": pays}
    return tiers


def _tier(tier: TierPlan) -> dict[str, Any]:
    if tier.observed_tokens is None:
        status = TierStatus(bytes=tier.capacity_bytes, tokens=tier.held_tokens, source=Source.PLANNED)
    else:
        size_bytes = tier.capacity_bytes * tier.observed_tokens // max(tier.held_tokens, 1)
        status = TierStatus(bytes=size_bytes, tokens=tier.observed_tokens, source=Source.OBSERVED)
    return status.model_dump(mode="json", by_alias=True, exclude_none=True)


def _router(plan: Plan) -> dict[str, Any]:
    router = plan.router
    url = router.gateway.url if router.gateway else None
    return _router_status(router, config_hash=router.config_hash, url=url)


def _others_router(resource: KVCacheTier, planned: PickerConfig) -> dict[str, Any]:
    """Of a picker that others own, which is given the same."""
    name = Names.of_resource(resource).picker
    return _router_status(planned, config_hash=content_hash(planned.text), config_map=name)


def _router_status(planned: RouterPlan | PickerConfig, **further: str | None) -> dict[str, Any]:
    status = RouterStatus(
        entries=RouterEntries(**{PREFIX_SCORERS[tier]: number for tier, number in planned.entries.items()}),
        tokens_per_entry=planned.tokens_per_entry,
        **further,
    )
    return status.model_dump(mode="json", by_alias=True, exclude_none=True)
