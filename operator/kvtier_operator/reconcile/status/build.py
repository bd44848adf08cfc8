"""The whole status of one resource."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvtier_operator.planning.base.names import Component
from kvtier_operator.reconcile.apply.failure import ApplyFailure
from kvtier_operator.reconcile.facts.autoscaler import AutoscalerFacts
from kvtier_operator.reconcile.facts.cached_plan import CachedPlan
from kvtier_operator.reconcile.facts.condition import UntimedCondition, with_transition_time
from kvtier_operator.reconcile.facts.deployment import DeploymentFacts
from kvtier_operator.reconcile.facts.pod import NotReadyPod
from kvtier_operator.reconcile.status.conditions.autoscaler_ready import autoscaler_ready
from kvtier_operator.reconcile.status.conditions.budget_fits import with_engines
from kvtier_operator.reconcile.status.conditions.engines_ready import engines_ready
from kvtier_operator.reconcile.status.conditions.ready import ready
from kvtier_operator.reconcile.status.conditions.router_ready import router_ready
from kvtier_operator.reconcile.status.gateway_pods import GatewayPods
from kvtier_operator.reconcile.status.not_created import with_cause
from kvtier_operator.reconcile.status.route_state import Route
from kvtier_operator.reconcile.status.tiers_in_use import tiers_in_use
from kvtier_operator.reconcile.status.unserved_kinds import UnservedKinds

Status = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StatusInput:
    """Everything that a status is computed from.

    Attributes:
        generation: Generation that was reconciled.
        plan: Its plan.
        engine: The engines' Deployment.
        picker: The picker's Deployment.
        engine_pods_not_ready: Engine pods that are not ready or are terminating.
        picker_pods_not_ready: Picker pods that are not ready or are terminating.
        failures: Objects that could not be applied.
        kinds: Kinds of desired objects that the cluster does not serve.
        now: The time, RFC 3339 in UTC.
        way_in: The route, or kvtier's own gateway; None where there is neither.
        rejected_report: Why an engine's report of its tiers was not believed; empty where it was.
        autoscaler: What the autoscaler says; None where there is none.
    """

    generation: int
    plan: CachedPlan
    engine: DeploymentFacts | None
    picker: DeploymentFacts | None
    engine_pods_not_ready: Sequence[NotReadyPod]
    picker_pods_not_ready: Sequence[NotReadyPod]
    failures: Sequence[ApplyFailure]
    kinds: UnservedKinds
    now: str
    way_in: Route | GatewayPods | None = None
    rejected_report: str = ""
    autoscaler: AutoscalerFacts | None = None


def build_status(inputs: StatusInput, previous: Mapping[str, Any]) -> Status:
    """The status as it should be now.

    Args:
        inputs: What is known now.
        previous: The status so far. Conditions that did not change keep their times, and where a new spec was
            rejected, the figures of what still runs are kept.
    """
    plan, before = inputs.plan, previous.get("conditions", ())
    status: Status = {
        "observedGeneration": inputs.generation,
        "conditions": [
            with_transition_time(condition, before, inputs.generation, inputs.now)
            for condition in untimed_conditions(inputs)
        ],
    }
    if inputs.engine is not None:
        status |= {"replicas": inputs.engine.replicas, "readyReplicas": inputs.engine.ready_replicas}
    kept = previous if plan.rejected else {}
    for name, value in (("tiers", plan.tiers), ("router", plan.router), ("selector", plan.selector)):
        if chosen := value or kept.get(name):
            status[name] = chosen
    return status


def untimed_conditions(inputs: StatusInput) -> tuple[UntimedCondition, ...]:
    """All conditions in the order of the API, without their times."""
    plan = inputs.plan
    engines = [each for each in inputs.failures if each.component is Component.ENGINE]
    scalers = [each for each in inputs.failures if each.component is Component.AUTOSCALER]
    others = [each for each in inputs.failures if each not in (*engines, *scalers)]
    if plan.scaling is None:  # one that is no longer wanted, and holds the engines up
        engines += scalers
    tiers = "; ".join(filter(None, (tiers_in_use(plan.tiers), inputs.rejected_report)))
    engines_condition = engines_ready(
        inputs.engine, inputs.engine_pods_not_ready, engines, plan.startup_s, tiers
    )
    router_condition = router_ready(
        inputs.picker, inputs.picker_pods_not_ready, others, inputs.kinds, inputs.way_in
    )
    parts = (
        plan.accepted,
        with_engines(plan.budget_fits, inputs.engine),
        plan.nodes_fit,
        with_cause(engines_condition, (*others, *inputs.kinds.failures), rejected=plan.rejected),
        with_cause(router_condition, engines, rejected=plan.rejected),
    )
    if plan.scaling is None:
        return (*parts, ready(parts))
    scalers += inputs.kinds.scaler_failures
    return (*parts, autoscaler_ready(plan.scaling, inputs.autoscaler, scalers), ready(parts))
