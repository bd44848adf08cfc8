"""The whole status of one resource, and which of its conditions changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvtier_operator.planning.objects.names import Component
from kvtier_operator.reconcile.apply.failure import ApplyFailure
from kvtier_operator.reconcile.facts.deployment import DeploymentFacts
from kvtier_operator.reconcile.facts.pod import NotReadyPod
from kvtier_operator.reconcile.loop.cached_plan import CachedPlan
from kvtier_operator.reconcile.status.condition import UntimedCondition, with_transition_time
from kvtier_operator.reconcile.status.conditions.budget_fits import with_engines
from kvtier_operator.reconcile.status.conditions.engines_ready import engines_ready
from kvtier_operator.reconcile.status.conditions.ready import ready
from kvtier_operator.reconcile.status.conditions.router_ready import router_ready
from kvtier_operator.reconcile.status.not_created import with_cause
from kvtier_operator.reconcile.status.route_state import Route
from kvtier_operator.reconcile.status.tiers_in_use import tiers_in_use
from kvtier_operator.reconcile.status.unserved_kinds import UnservedKinds

Status = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StatusInput:
    """Everything a status is made of.

    Attributes:
        generation: Generation that was acted on.
        plan: Its plan.
        engine: The engines' Deployment.
        picker: The picker's Deployment.
        engine_troubles: Engine pods that are not ready.
        picker_troubles: Picker pods that are not ready.
        failures: Objects that could not be applied.
        kinds: Kinds of wanted objects that the cluster does not serve.
        now: The time, RFC 3339 in UTC.
        route: The route; None where there is none.
        not_taken: What an engine said of its tiers that cannot be; empty where none did.
    """

    generation: int
    plan: CachedPlan
    engine: DeploymentFacts | None
    picker: DeploymentFacts | None
    engine_troubles: Sequence[NotReadyPod]
    picker_troubles: Sequence[NotReadyPod]
    failures: Sequence[ApplyFailure]
    kinds: UnservedKinds
    now: str
    route: Route | None = None
    rejected_report: str = ""


def build_status(given: StatusInput, previous: Mapping[str, Any]) -> Status:
    """The status to have.

    Args:
        given: What is known now.
        previous: The status there is: times of conditions that did not change are kept, and so are the
            figures of what runs where a new spec was rejected.
    """
    plan, before = given.plan, previous.get("conditions", ())
    status: Status = {
        "observedGeneration": given.generation,
        "conditions": [
            with_transition_time(condition, before, given.generation, given.now)
            for condition in untimed_conditions(given)
        ],
    }
    if given.engine is not None:
        status |= {"replicas": given.engine.exist, "readyReplicas": given.engine.ready}
    kept = previous if plan.rejected else {}
    for name, value in (("tiers", plan.tiers), ("router", plan.router), ("selector", plan.selector)):
        if chosen := value or kept.get(name):
            status[name] = chosen
    return status


def untimed_conditions(given: StatusInput) -> tuple[UntimedCondition, ...]:
    """All conditions, in the order of the API."""
    plan = given.plan
    engines = [each for each in given.failures if each.component is Component.ENGINE]
    others = [each for each in given.failures if each.component is not Component.ENGINE]
    tiers = "; ".join(filter(None, (tiers_in_use(plan.tiers), given.rejected_report)))
    engines_said = engines_ready(given.engine, given.engine_troubles, engines, plan.startup_s, tiers)
    router_said = router_ready(given.picker, given.picker_troubles, others, given.kinds, given.route)
    parts = (
        plan.accepted,
        with_engines(plan.budget_fits, given.engine),
        plan.nodes_fit,
        with_cause(engines_said, (*others, *given.kinds.failures), rejected=plan.rejected),
        with_cause(router_said, engines, rejected=plan.rejected),
    )
    return (*parts, ready(parts))
