"""The part of a plan that is kept between reconciliations: digests of its objects, its part of the status."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kvtier_operator.planning.observed import NOTHING_FOUND, EngineFindings, EngineTokens
from kvtier_operator.planning.report.scaling import Scaling
from kvtier_operator.reconcile.facts.condition import UntimedCondition
from kvtier_operator.reconcile.facts.desired import DesiredObject

_NOTHING: Final = EngineTokens()


@dataclass(frozen=True, slots=True)
class CachedPlan:
    """The plan of one generation of a resource, without the bodies of its objects.

    Attributes:
        generation: Generation of the resource.
        rejected: Whether the spec is rejected, so that nothing is applied.
        desired: The desired objects without their bodies; none where the spec is rejected.
        accepted: Condition Accepted.
        budget_fits: Condition BudgetFits.
        nodes_fit: Condition NodesFit.
        nodes_version: Version of the node cache that `nodes_fit` was computed from.
        storage_version: Version of the storage classes that `budget_fits` was computed from.
        engine_hash: Hash of the part of the spec that engines are started with.
        engine_tokens: Sizes of its tiers that a running engine reported; None where none had.
        engine_findings: What else it reported of them.
        most_tokens: The largest sizes that an engine's report is believed.
        most_pinned_bytes: The most locked memory that an engine's report is believed.
        engine_port: Port on which engines serve HTTP.
        tiers: `status.tiers`.
        router: `status.router`.
        selector: `status.selector`.
        startup_s: Seconds an engine has to start.
        scaling: What scales the engines, and by what; None where the resource does.
        serves_scaled_objects: Whether the cluster had KEDA when it was planned.
    """

    generation: int
    rejected: bool
    desired: tuple[DesiredObject, ...]
    accepted: UntimedCondition
    budget_fits: UntimedCondition
    nodes_fit: UntimedCondition
    nodes_version: int
    storage_version: int
    engine_hash: str
    engine_tokens: EngineTokens | None = None
    engine_findings: EngineFindings = NOTHING_FOUND
    most_tokens: EngineTokens = _NOTHING
    most_pinned_bytes: int = 0
    engine_port: int = 0
    tiers: Mapping[str, Any] = field(default_factory=dict)
    router: Mapping[str, Any] = field(default_factory=dict)
    selector: str = ""
    startup_s: int = 0
    scaling: Scaling | None = None
    serves_scaled_objects: bool | None = None
