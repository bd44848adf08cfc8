"""From a stored resource and what is observed to its Plan: objects to apply, and words for the status."""

from dataclasses import dataclass
from typing import Any

import orjson

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.api.status import RouterEntries, RouterStatus, Source, TierStatus
from kvtier_operator.api.tiers import Policy
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.corrected import most_pinned_bytes
from kvtier_operator.planning.namespace.namespace import UNBOUNDED, Namespace, refusals
from kvtier_operator.planning.nodes.fit import nodes_fit
from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.objects.names import Component, Names
from kvtier_operator.planning.observed import NOTHING_FOUND, EngineFindings, Observed
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.tier_plan import TierPlan
from kvtier_operator.reconcile.apply.desired import Wanted, wanted_objects
from kvtier_operator.reconcile.cache.resources import Key, Tier
from kvtier_operator.reconcile.loop.cached_plan import Planned
from kvtier_operator.reconcile.status.conditions.accepted import accepted, not_valid
from kvtier_operator.reconcile.status.conditions.budget_fits import budget_fits, no_budget
from kvtier_operator.reconcile.status.conditions.nodes_fit import no_pod, nodes_fit_condition, nodes_not_seen


@dataclass(frozen=True, slots=True)
class View:
    """What is observed of the cluster for one plan.

    Attributes:
        observed: For the planner.
        nodes_version: Of the nodes in it.
        engine_hash: Hash of what the resource says of engines.
        nodes_unseen: Why the nodes are not known; empty where they are.
        engine_findings: What a running engine said of its tiers beside their sizes.
        namespace: What bounds the pods of the resource's namespace.
        namespace_version: Of that.
    """

    observed: Observed
    nodes_version: int
    engine_hash: str
    nodes_unseen: str = ""
    engine_findings: EngineFindings = NOTHING_FOUND
    namespace: Namespace = UNBOUNDED
    namespace_version: int = 0


def plan_tier(key: Key, tier: Tier, view: View) -> tuple[Planned, tuple[Wanted, ...]]:
    """Works one resource out.

    Returns:
        What to keep of it, and its objects with their bodies; no objects where the spec is rejected.
    """
    if tier.refusal:
        said = InvalidInputError(str(key), Problem("spec", tier.refusal))
        return _not_valid(said, tier.generation, view), ()
    try:
        resource = parse_resource(orjson.loads(tier.spec), str(key))
        plan = make_plan(resource, view.observed)
    except InvalidInputError as error:
        return _not_valid(_with_source(error, view), tier.generation, view), ()
    wanted = () if plan.rejected else wanted_objects(build_objects(plan), name=key.name, uid=tier.uid)
    nodes = nodes_not_seen(view.nodes_unseen) if view.nodes_unseen else nodes_fit_condition(_fit(plan, view))
    planned = Planned(
        generation=tier.generation,
        rejected=plan.rejected,
        wanted=tuple(each.without_body() for each in wanted),
        accepted=accepted(plan),
        budget_fits=budget_fits(plan, refusals(plan, view.namespace)),
        nodes_fit=nodes,
        nodes_version=view.nodes_version,
        namespace_version=view.namespace_version,
        engine_hash=view.engine_hash,
        engine_tokens=view.observed.engine,
        engine_findings=view.engine_findings,
        most_tokens=plan.most_tokens,
        most_pinned_bytes=_most_pinned_bytes(plan),
        engine_port=plan.engine.port,
        tiers={} if plan.rejected else _tiers(plan, view.engine_findings),
        router={} if plan.rejected else _router(plan),
        selector="" if plan.rejected else _selector(plan),
        startup_s=plan.budget.fetch_s + plan.budget.startup_s,
    )
    return planned, wanted


def _most_pinned_bytes(plan: Plan) -> int:
    engine = plan.resource.spec.engine
    return most_pinned_bytes(plan.tiers, engine.tensor_parallel_size * engine.data_parallel_size)


def _fit(plan: Plan, view: View) -> Any:  # noqa: ANN401 - typed where it is used
    return nodes_fit(plan, view.observed.nodes or ())


def _with_source(error: InvalidInputError, view: View) -> InvalidInputError:
    """The same error; one of a model's configuration says where that is."""
    source = view.observed.model_config_source
    if not source or error.source != source:
        return error
    return InvalidInputError(source, *(Problem("", f"{source}: {each}") for each in error.problems))


def _not_valid(error: InvalidInputError, generation: int, view: View) -> Planned:
    return Planned(
        generation=generation,
        rejected=True,
        wanted=(),
        accepted=not_valid(error.problems),
        budget_fits=no_budget(),
        nodes_fit=no_pod(),
        nodes_version=view.nodes_version,
        namespace_version=view.namespace_version,
        engine_hash=view.engine_hash,
        engine_tokens=view.observed.engine,
        engine_findings=view.engine_findings,
    )


def _selector(plan: Plan) -> str:
    labels = Names.of(plan).selector(Component.ENGINE)
    return ",".join(f"{name}={labels[name]}" for name in sorted(labels))


def _tiers(plan: Plan, findings: EngineFindings) -> dict[str, Any]:
    tiers = {"gpu": plan.tiers.gpu, "cpu": plan.tiers.cpu, "disk": plan.tiers.disk}
    found = {name: _tier(tier) for name, tier in tiers.items() if tier is not None}
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
        entries=RouterEntries(
            gpu_prefix=entries.gpu_prefix, cpu_prefix=entries.cpu_prefix, disk_prefix=entries.disk_prefix
        ),
        tokens_per_entry=plan.router.tokens_per_entry,
        config_hash=plan.router.config_hash,
    )
    return status.model_dump(mode="json", by_alias=True, exclude_none=True)
