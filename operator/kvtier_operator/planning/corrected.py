"""The tiers as running engines say they are, where that is known."""

from dataclasses import replace
from typing import Final

from kvtier_operator.planning.geometry import Geometry
from kvtier_operator.planning.observed import EngineTokens
from kvtier_operator.planning.plan import TierPlan, Tiers

TOLERANCE: Final = 0.05
"""By how much a tier may differ from its plan before the picker's capacities follow: a picker that restarts
with a new configuration has forgotten its index."""


def correct_tiers(tiers: Tiers, geometry: Geometry, engine: EngineTokens | None) -> Tiers:
    """The tiers with what an engine says of them; the plan's own figures stay beside it.

    Args:
        tiers: As planned.
        geometry: KV geometry of the model.
        engine: What one running engine pod says; None where none was asked.
    """
    if engine is None:
        return tiers
    gpu = tiers.gpu
    if gpu is None and engine.gpu is not None:
        gpu = _unplanned(engine.gpu, geometry)
    return Tiers(
        gpu=gpu and _corrected(gpu, engine.gpu),
        cpu=_corrected(tiers.cpu, engine.cpu),
        disk=tiers.disk and _corrected(tiers.disk, engine.disk),
    )


def differs(tokens: int, from_tokens: int) -> bool:
    """Whether a size is off another by more than the tolerance."""
    return abs(tokens - from_tokens) > TOLERANCE * from_tokens


def picker_tokens(tier: TierPlan) -> int:
    """Tokens that the picker is told a tier holds: those planned, unless the engine has clearly others."""
    observed = tier.observed_tokens
    return observed if observed is not None and differs(observed, tier.tokens) else tier.tokens


def _corrected(tier: TierPlan, tokens: int | None) -> TierPlan:
    return tier if tokens is None else replace(tier, observed_tokens=tokens)


def _unplanned(tokens: int, geometry: Geometry) -> TierPlan:
    """A device cache whose size nothing told before its engine ran."""
    size_bytes = tokens * geometry.kv_bytes_per_token
    return TierPlan(
        capacity_bytes=size_bytes,
        bytes_per_rank=tokens * geometry.kv_bytes_per_token_per_rank,
        tokens=tokens,
    )
