"""What the engine of a pod that was given a tier says of itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kvtier_common.tier import Tier
from kvtier_operator.planning.attach.engine_reasons import is_left_alone
from kvtier_operator.planning.observed import EngineFindings, EngineTokens


@dataclass(frozen=True, slots=True)
class EngineReport:
    """One engine pod's answer."""

    reason: str = ""  # label of `kvtier_attach_info`; empty where it has none
    tokens: EngineTokens = field(default_factory=EngineTokens)  # sizes of its tiers
    capacity_bytes: Mapping[Tier, int] = field(default_factory=dict)  # the same in bytes
    findings: EngineFindings = field(default_factory=dict)  # what else it says of them

    @property
    def left_alone(self) -> bool:
        """Whether it has no tier, although its pod was given one."""
        return is_left_alone(self.reason)

    @property
    def sized(self) -> bool:
        """Whether it has the tier and knows how large: from its first step on, once memory has grown."""
        return not self.left_alone and {Tier.GPU, Tier.CPU} <= self.tokens.by_tier.keys()

    @property
    def final(self) -> bool:
        """Whether a later answer of the same start says nothing else."""
        measures = any(of_tier.pays is not None for of_tier in self.findings.values())
        return self.left_alone or (self.sized and not measures)
