"""What is kept of a Plan between reconciliations: hashes of its objects, and what the status says of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kvtier_operator.planning.observed import NOTHING_FOUND, EngineFindings, EngineTokens
from kvtier_operator.reconcile.apply.desired import Wanted
from kvtier_operator.reconcile.status.verdict import Verdict

_NOTHING: Final = EngineTokens()


@dataclass(frozen=True, slots=True)
class Planned:
    """One generation of a resource, worked out.

    Attributes:
        generation: Which.
        rejected: Whether nothing of it is to be applied.
        wanted: Its objects without their bodies; none where it was rejected.
        accepted: Condition Accepted.
        budget_fits: Condition BudgetFits.
        nodes_fit: Condition NodesFit.
        nodes_version: Of the nodes that `nodes_fit` speaks of.
        namespace_version: Of what bounds the namespace, of which `budget_fits` speaks.
        engine_hash: Hash of what the spec says of engines.
        engine_tokens: What a running engine said of its tiers' sizes, as far as it was known.
        engine_findings: What else it said of them.
        most_tokens: The most that it may say of sizes.
        most_pinned_bytes: The most that it may say is locked in memory.
        engine_port: Where engines serve HTTP.
        tiers: `status.tiers`.
        router: `status.router`.
        selector: `status.selector`.
        startup_s: Seconds an engine has to start.
    """

    generation: int
    rejected: bool
    wanted: tuple[Wanted, ...]
    accepted: Verdict
    budget_fits: Verdict
    nodes_fit: Verdict
    nodes_version: int
    namespace_version: int
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
