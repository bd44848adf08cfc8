"""A resource of which all is well, and the conditions that follow from what is known."""

from dataclasses import replace
from typing import Any

from tests.unit.operator.reconcile.objects import plan_objects

from kvtier_operator.reconcile.facts.objects import DeploymentFacts
from kvtier_operator.reconcile.status.build import StatusInput, build_status
from kvtier_operator.reconcile.status.router import UnservedKinds

READY = DeploymentFacts(
    desired_replicas=2, replicas=2, updated_replicas=2, ready_replicas=2, observed_latest=True
)
FULL = StatusInput(
    generation=3,
    plan=plan_objects({"spec.replicas": 2})[0],
    engine=READY,
    picker=replace(READY, desired_replicas=1, replicas=1, updated_replicas=1, ready_replicas=1),
    engine_pods_not_ready=(),
    picker_pods_not_ready=(),
    failures=(),
    kinds=UnservedKinds(),
    now="2026-01-02T03:04:05Z",
)


def conditions(inputs: StatusInput, previous: dict[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    """By type."""
    return {condition["type"]: condition for condition in build_status(inputs, previous or {})["conditions"]}
