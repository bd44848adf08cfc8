"""The whole status of one resource, and condition Ready."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kvtier_operator.api.resource import PrefixStatus
from kvtier_operator.planning.base.names import Component
from kvtier_operator.reconcile.apply.apply import ApplyFailure
from kvtier_operator.reconcile.cache.pods import NotReadyPod
from kvtier_operator.reconcile.facts.cached_plan import (
    CachedPlan,
    UntimedCondition,
    false_condition,
    true_condition,
    with_transition_time,
)
from kvtier_operator.reconcile.facts.objects import AutoscalerFacts, DeploymentFacts
from kvtier_operator.reconcile.status.attached import ATTACHED, Attachment
from kvtier_operator.reconcile.status.engines import (
    autoscaler_ready_condition,
    engines_ready_condition,
    tiers_in_use,
    with_cause,
)
from kvtier_operator.reconcile.status.plan import with_engines
from kvtier_operator.reconcile.status.progress import progress_conditions
from kvtier_operator.reconcile.status.router import GatewayPods, Route, UnservedKinds, router_ready_condition
from kvtier_operator.reconcile.status.store import StorePods, store_ready_condition

READY: Final = "Ready"
_NEEDED: Final = ("Accepted", "EnginesReady", "RouterReady", ATTACHED)
"""Sizes that contradict each other are part of Accepted. A namespace or nodes without room keep new pods from
starting: then EnginesReady or RouterReady is False too, and quotes the cause."""
_BESIDE: Final = {"EnginesReady": ("BudgetFits", "NodesFit"), "RouterReady": ("BudgetFits",)}
Status = dict[str, Any]


def ready_condition(untimed_conditions: Sequence[UntimedCondition]) -> UntimedCondition:
    """True where the spec is accepted, and engines and router are ready or pods attached; else why not."""
    by_type = {untimed_condition.type: untimed_condition for untimed_condition in untimed_conditions}
    needed = [by_type[name] for name in _NEEDED if name in by_type]
    failing = [condition for condition in needed if not condition.is_true]
    if not failing:
        return true_condition(READY, "Ready", "; ".join(condition.message for condition in needed[1:]))
    first = failing[0]
    beside = [by_type[name] for name in _BESIDE.get(first.type, ()) if by_type[name].status == "False"]
    hints = "".join(f"; {condition.type}: {_first_part(condition.message)}" for condition in beside)
    return false_condition(READY, first.reason, f"{first.type}: {first.message}{hints}")


def _first_part(message: str) -> str:
    """The first part of another condition's message, which has the rest."""
    begun, _, rest = message.partition("; ")
    return f"{begun}; ..." if rest else begun


@dataclass(frozen=True, slots=True)
class StatusInput:
    """Everything that a status is computed from."""

    generation: int
    plan: CachedPlan
    engine: DeploymentFacts | None
    picker: DeploymentFacts | None
    engine_pods_not_ready: Sequence[NotReadyPod]
    picker_pods_not_ready: Sequence[NotReadyPod]
    failures: Sequence[ApplyFailure]
    kinds: UnservedKinds
    now: str  # the time, RFC 3339 in UTC
    # the route, or kvtier's own gateway; None where there is neither
    way_in: Route | GatewayPods | None = None
    asked_again: bool = False  # whether the operator asks again for what a refused spec lacks
    rejected_report: str = ""  # why an engine's report of its tiers was not believed; empty where it was
    store: StorePods | None = None  # the store's own pods; None where the plan has none
    autoscaler: AutoscalerFacts | None = None  # what the autoscaler says; None where there is none
    attachment: Attachment | None = None  # what is said of others' pods; None where the resource has its own


def build_status(inputs: StatusInput, previous: Mapping[str, Any]) -> Status:
    """The status as it should be now.

    Conditions that did not change since `previous` keep their times, and where a new spec was rejected, the
    figures of what still runs are kept.
    """
    plan, before = inputs.plan, previous.get("conditions", ())
    conditions = untimed_conditions(inputs)
    status: Status = {
        "observedGeneration": inputs.generation,
        "conditions": [
            with_transition_time(condition, before, inputs.generation, inputs.now)
            for condition in (*conditions, *_progress(conditions, inputs))
        ],
    }
    if inputs.attachment is not None:
        said = {"tiers": inputs.attachment.tiers, "router": plan.router, "attach": inputs.attachment.status}
        return status | {name: dict(value) for name, value in said.items() if value}
    if inputs.engine is not None:
        status |= {"replicas": inputs.engine.replicas, "readyReplicas": inputs.engine.ready_replicas}
    kept = previous if plan.rejected else {}
    planned = (("tiers", plan.tiers), ("router", plan.router), ("selector", plan.selector))
    for name, value in (*planned, ("prefixes", _prefixes(plan))):
        if chosen := value or kept.get(name):
            status[name] = chosen
    return status


def _prefixes(plan: CachedPlan) -> list[dict[str, Any]]:
    """Each of those that engines compute, and what one says of it."""
    return [
        PrefixStatus(
            name=name,
            tokens=told.tokens if (told := plan.prefix_findings.get(name)) else None,
            cached_tokens=told.cached_tokens if told else None,
        ).model_dump(mode="json", by_alias=True, exclude_none=True)
        for name in plan.prefixes
    ]


def _progress(conditions: Sequence[UntimedCondition], inputs: StatusInput) -> tuple[UntimedCondition, ...]:
    needed = [condition for condition in conditions if condition.type in (*_NEEDED, READY)]
    return progress_conditions(needed, asked_again=inputs.asked_again)


def untimed_conditions(inputs: StatusInput) -> tuple[UntimedCondition, ...]:
    """All conditions in the order of the API but those of progress, without their times."""
    plan = inputs.plan
    if inputs.attachment is not None:
        attached = inputs.attachment.condition
        ready = ready_condition((plan.accepted, attached))
        if ready.is_true and inputs.failures:
            failure = inputs.failures[0]
            ready = false_condition(READY, failure.reason, f"the picker's configuration: {failure.message}")
        return plan.accepted, attached, ready
    engines = [failure for failure in inputs.failures if failure.component is Component.ENGINE]
    scalers = [failure for failure in inputs.failures if failure.component is Component.AUTOSCALER]
    stores = [failure for failure in inputs.failures if failure.component is Component.STORE]
    others = [failure for failure in inputs.failures if failure not in (*engines, *scalers, *stores)]
    if plan.scaling is None:  # one that is no longer wanted, and holds the engines up
        engines += scalers
    tiers = "; ".join(filter(None, (tiers_in_use(plan.tiers), inputs.rejected_report)))
    engines_condition = engines_ready_condition(
        inputs.engine, inputs.engine_pods_not_ready, engines, plan.startup_s, tiers
    )
    router_condition = router_ready_condition(
        inputs.picker, inputs.picker_pods_not_ready, others, inputs.kinds, inputs.way_in
    )
    parts = (
        plan.accepted,
        with_engines(plan.budget_fits, inputs.engine),
        plan.nodes_fit,
        with_cause(engines_condition, (*others, *inputs.kinds.failures), rejected=plan.rejected),
        with_cause(router_condition, engines, rejected=plan.rejected),
    )
    scalers += inputs.kinds.scaler_failures
    beside = (
        *([autoscaler_ready_condition(plan.scaling, inputs.autoscaler, scalers)] if plan.scaling else []),
        *([store_ready_condition(inputs.store, stores)] if inputs.store else []),
    )
    return (*parts, *beside, ready_condition(parts))
