"""A resource of which all is well, and the conditions that follow from what is known."""

from dataclasses import replace
from typing import Any

from tests.unit.operator.reconcile.objects import planned

from kvtier_operator.reconcile.facts.deployment import DeploymentFacts
from kvtier_operator.reconcile.status.build import StatusInput, build_status
from kvtier_operator.reconcile.status.unserved_kinds import UnservedKinds

READY = DeploymentFacts(wanted=2, exist=2, updated=2, ready=2, current=True)
FULL = StatusInput(
    generation=3,
    plan=planned({"spec.replicas": 2})[0],
    engine=READY,
    picker=replace(READY, wanted=1, exist=1, updated=1, ready=1),
    engine_troubles=(),
    picker_troubles=(),
    failures=(),
    kinds=UnservedKinds(),
    now="2026-01-02T03:04:05Z",
)


def conditions(given: StatusInput, previous: dict[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    """By type."""
    return {each["type"]: each for each in build_status(given, previous or {})["conditions"]}
