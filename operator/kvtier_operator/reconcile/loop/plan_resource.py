"""Plans a resource from what is observed: its desired objects, and what the status says of them."""

from typing import Any

import orjson

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.api.spec.tiers import Policy
from kvtier_operator.api.status import RouterEntries, RouterStatus, Source, TierStatus
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.base.tier_plan import TierPlan
from kvtier_operator.planning.cluster.nodes_fit import nodes_fit
from kvtier_operator.planning.cluster.storage import Namespace, storage_verdicts
from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.observed import EngineFindings
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.pod_template.template import pod_templates
from kvtier_operator.planning.report.scaling import scaling_of
from kvtier_operator.planning.tiers.observed_tiers import most_pinned_bytes
from kvtier_operator.reconcile.cache.resources import CachedResource, Key
from kvtier_operator.reconcile.facts.cached_plan import CachedPlan
from kvtier_operator.reconcile.facts.desired import DesiredObject, desired_objects
from kvtier_operator.reconcile.loop.cluster_observation import ClusterObservation
from kvtier_operator.reconcile.status.conditions.accepted import accepted, not_valid
from kvtier_operator.reconcile.status.conditions.budget_fits import budget_fits, no_budget
from kvtier_operator.reconcile.status.conditions.nodes_fit import no_pod, nodes_fit_condition, nodes_not_seen
from kvtier_scorer.config.model import PREFIX_SCORERS


def plan_resource(
    key: Key, resource: CachedResource, cluster: ClusterObservation
) -> tuple[CachedPlan, tuple[DesiredObject, ...]]:
    """Plans one resource, as far as its spec is valid.

    Returns:
        What to keep of the plan, and the desired objects with their bodies; none where the spec is rejected.
    """
    if resource.refusal:
        refused = InvalidInputError(str(key), Problem("spec", resource.refusal))
        return _not_valid(refused, resource.generation, cluster), ()
    try:
        parsed = parse_resource(orjson.loads(resource.spec), str(key))
        plan = make_plan(parsed, cluster.observed)
    except InvalidInputError as error:
        return _not_valid(_with_source(error, cluster), resource.generation, cluster), ()
    templates = pod_templates(parsed.spec)
    desired = (
        ()
        if plan.rejected
        else desired_objects(build_objects(plan), name=key.name, uid=resource.uid, templates=templates)
    )
    nodes = (
        nodes_not_seen(cluster.nodes_unknown)
        if cluster.nodes_unknown
        else nodes_fit_condition(nodes_fit(plan, cluster.observed.nodes or ()))
    )
    cached = CachedPlan(
        generation=resource.generation,
        rejected=plan.rejected,
        desired=tuple(each.without_body() for each in desired),
        accepted=accepted(plan),
        budget_fits=budget_fits(plan, storage_verdicts(plan, Namespace(cluster.storage_classes))),
        nodes_fit=nodes,
        nodes_version=cluster.nodes_version,
        storage_version=cluster.storage_version,
        engine_hash=cluster.engine_hash,
        engine_tokens=cluster.observed.engine,
        engine_findings=cluster.engine_findings,
        most_tokens=plan.most_tokens,
        most_pinned_bytes=_most_pinned_bytes(plan),
        engine_port=plan.engine.port,
        tiers={} if plan.rejected else _tiers(plan, cluster.engine_findings),
        router={} if plan.rejected else _router(plan),
        selector="" if plan.rejected else _selector(plan),
        startup_s=plan.budget.fetch_s + plan.budget.startup_s,
        scaling=None if plan.rejected else scaling_of(plan),
        serves_scaled_objects=cluster.observed.serves_scaled_objects,
    )
    return cached, desired


def _most_pinned_bytes(plan: Plan) -> int:
    engine = plan.resource.spec.engine
    return most_pinned_bytes(plan.tiers, engine.tensor_parallel_size * engine.data_parallel_size)


def _with_source(error: InvalidInputError, cluster: ClusterObservation) -> InvalidInputError:
    """The same error; one of a model's configuration says where that is."""
    source = cluster.observed.model_config_source
    if not source or error.source != source:
        return error
    return InvalidInputError(source, *(Problem("", f"{source}: {each}") for each in error.problems))


def _not_valid(error: InvalidInputError, generation: int, cluster: ClusterObservation) -> CachedPlan:
    return CachedPlan(
        generation=generation,
        rejected=True,
        desired=(),
        accepted=not_valid(error.problems),
        budget_fits=no_budget(),
        nodes_fit=no_pod(),
        nodes_version=cluster.nodes_version,
        storage_version=cluster.storage_version,
        engine_hash=cluster.engine_hash,
        engine_tokens=cluster.observed.engine,
        engine_findings=cluster.engine_findings,
        serves_scaled_objects=cluster.observed.serves_scaled_objects,
    )


def _selector(plan: Plan) -> str:
    labels = Names.of(plan).selector(Component.ENGINE)
    return ",".join(f"{name}={labels[name]}" for name in sorted(labels))


def _tiers(plan: Plan, findings: EngineFindings) -> dict[str, Any]:
    found = {tier.label: _tier(planned) for tier, planned in plan.tiers.by_tier.items()}
    if plan.tiers.observed_block_tokens is not None and "gpu" in found:
        found["gpu"] |= {"blockTokens": plan.tiers.observed_block_tokens}
    most_pinned = _most_pinned_bytes(plan)
    asks_for_locking = plan.resource.spec.tiers.cpu.memlock.policy is not Policy.OFF
    if findings.pinned_bytes is not None and findings.pinned_bytes <= most_pinned and asks_for_locking:
        found["cpu"] |= {"pinnedBytes": findings.pinned_bytes}
    if findings.disk_pays is not None and "disk" in found:
        found["disk"] |= {"pays": findings.disk_pays}
    return found


def _tier(tier: TierPlan) -> dict[str, Any]:
    if tier.observed_tokens is None:
        status = TierStatus(bytes=tier.capacity_bytes, tokens=tier.held_tokens, source=Source.PLANNED)
    else:
        size_bytes = tier.capacity_bytes * tier.observed_tokens // max(tier.held_tokens, 1)
        status = TierStatus(bytes=size_bytes, tokens=tier.observed_tokens, source=Source.OBSERVED)
    return status.model_dump(mode="json", by_alias=True, exclude_none=True)


def _router(plan: Plan) -> dict[str, Any]:
    entries = plan.router.entries
    status = RouterStatus(
        entries=RouterEntries(**{PREFIX_SCORERS[tier]: number for tier, number in entries.items()}),
        tokens_per_entry=plan.router.tokens_per_entry,
        config_hash=plan.router.config_hash,
        url=plan.router.gateway.url if plan.router.gateway else None,
    )
    return status.model_dump(mode="json", by_alias=True, exclude_none=True)
