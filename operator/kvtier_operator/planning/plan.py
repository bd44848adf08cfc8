"""The Plan: everything that must agree, computed once from one KVCacheTier."""

from dataclasses import dataclass

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.base.container_parts import EnginePlan, Mount
from kvtier_operator.planning.base.ending import Ending
from kvtier_operator.planning.base.tier_plan import TiersPlan
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.observed import EngineTokens
from kvtier_operator.planning.pod.budget import Budget
from kvtier_operator.planning.pod.demands import DoctorPlan
from kvtier_operator.planning.router.router_plan import RouterPlan
from kvtier_operator.planning.scaling import Scaler
from kvtier_operator.planning.store.store_plan import StorePlan
from kvtier_operator.planning.verdict import CheckResult, Outcome


@dataclass(frozen=True, slots=True)
class Figure:
    """A number of the sizing report with how it came about."""

    name: str  # what it is, such as `KV bytes per token`
    value: int  # the number, in the unit that the name says
    how: str  # the formula with its numbers filled in, such as `2 x 64 layers x 8 heads x 128 x 2 B`


@dataclass(frozen=True, slots=True)
class Plan:
    """One KVCacheTier, worked out. Rendered to YAML, applied to a cluster or run as processes.

    `weights` is the volume that a pod keeps the model in; None where it makes none. `most_tokens` is the most
    that a running engine may say of its tiers. `scaler` is who says how many engines there are; None where
    the resource does. `store` is the one that is made for its engines; None where none is.
    """

    resource: KVCacheTier
    geometry: Geometry
    tiers: TiersPlan
    most_tokens: EngineTokens
    budget: Budget
    ending: Ending
    engine: EnginePlan
    weights: Mount | None
    doctor: DoctorPlan
    router: RouterPlan
    scaler: Scaler | None
    store: StorePlan | None
    pull_secrets: tuple[str, ...]
    checks: tuple[CheckResult, ...]
    figures: tuple[Figure, ...]
    notes: tuple[str, ...]

    @property
    def rejected(self) -> bool:
        """Whether any check refuses this plan."""
        return any(check.outcome is Outcome.REJECT for check in self.checks)
