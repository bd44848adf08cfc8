"""Replaces the planned sizes of tiers by what engines report, within what the plan can justify."""

from dataclasses import replace
from typing import Final

from kvtier_common.tier import Tier
from kvtier_operator.api.resource import Spec
from kvtier_operator.planning.base.tier_plan import TierPlan, TiersPlan
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.observed import EngineTokens
from kvtier_operator.planning.tiers.capacity import without_states
from kvtier_operator.planning.units import GIB

TOLERANCE: Final = 0.05
"""By how much a tier may differ from its plan before the picker's capacities follow: a picker that restarts
with a new configuration has forgotten its index."""
_ROOM: Final = 2
"""A tier may hold so many times the tokens planned: a hybrid model's may cost less than planned."""
_LEAST_BLOCK_TOKENS: Final = 16
_MOST_BLOCK_TOKENS: Final = 1 << 16
_SMALLER_BLOCK: Final = 4
"""By how much another GPU's block may be smaller than planned: 16 tokens in place of 64. A picker's index has
an entry for each block of a tier."""
_LARGEST_DEVICE_BYTES: Final = 512 * GIB
"""More than any device has; what bounds a device cache whose size nothing told before its engine ran."""


def most_tokens(tiers: TiersPlan, geometry: Geometry, ranks: int) -> EngineTokens:
    """The most tokens that a plan can justify; what says more is wrong, or means harm."""
    most = {tier: _most(planned, geometry) for tier, planned in tiers.by_tier.items()}
    most[Tier.GPU] = ranks * _LARGEST_DEVICE_BYTES // max(geometry.kv_bytes_per_token, 1)
    return EngineTokens(
        most, gpu_blocks=_SMALLER_BLOCK * ranks * _LARGEST_DEVICE_BYTES // max(geometry.block_bytes, 1)
    )


def _most(tier: TierPlan, geometry: Geometry) -> int:
    """Of a tier; on a GPU that keeps tokens smaller it holds more of them."""
    least = min(geometry.kv_bytes_per_token_by_gpu, default=geometry.kv_bytes_per_token)
    return _ROOM * tier.held_tokens * geometry.kv_bytes_per_token // max(least, 1)


def most_pinned_bytes(tiers: TiersPlan, ranks: int) -> int:
    """The same of bytes locked in memory; each rank's are whole pages, of 1 GiB at most."""
    return _ROOM * tiers.cpu.capacity_bytes + ranks * GIB


def why_not_believed(reported: EngineTokens, most: EngineTokens) -> str:
    """What an engine says of its tiers and no plan can justify, in words; empty where there is nothing."""
    sizes = [
        ("tokens", tier, reported.by_tier[tier], most.by_tier.get(tier, 0))
        for tier in Tier
        if tier in reported.by_tier
    ]
    if reported.gpu_blocks is not None:
        sizes.append(("blocks", Tier.GPU, reported.gpu_blocks, most.gpu_blocks or 0))
    return ", ".join(
        f"{number} {what} in tier {tier.label}, {limit} at most"
        for what, tier, number, limit in sorted(sizes, key=lambda size: size[1])
        if not 0 <= number <= limit
    )


def _justified(reported: EngineTokens | None, most: EngineTokens) -> EngineTokens | None:
    return None if reported is None or why_not_believed(reported, most) else reported


def correct_tiers(
    spec: Spec, tiers: TiersPlan, geometry: Geometry, engine: EngineTokens | None, most: EngineTokens
) -> TiersPlan:
    """The tiers with what an engine says of them; the plan's own figures stay beside it.

    What no plan can justify is not taken, whoever remembers it: an earlier operator's status, too.
    """
    engine = _justified(engine, most)
    engine = engine and _justified(_in_whole(engine, geometry), most)
    if engine is None:
        return tiers
    by_tier = dict(tiers.by_tier)
    if Tier.GPU not in by_tier and Tier.GPU in engine.by_tier:
        device = _unplanned(engine.by_tier[Tier.GPU], geometry)
        by_tier = {Tier.GPU: without_states(device, spec, geometry, geometry.block_tokens), **by_tier}
    return TiersPlan(
        {tier: _corrected(planned, engine.by_tier.get(tier)) for tier, planned in by_tier.items()},
        observed_block_tokens=_justified_block(engine.block, geometry),
    )


def differs(tokens: int, from_tokens: int) -> bool:
    """Whether a size is off another by more than the tolerance."""
    return abs(tokens - from_tokens) > TOLERANCE * from_tokens


def picker_tokens(tier: TierPlan) -> int:
    """Tokens that the picker is told a tier holds: those planned, unless the engine has clearly others."""
    observed = tier.observed_tokens
    if observed is None or not differs(observed, tier.held_tokens):
        return tier.tokens
    return observed * tier.tokens // max(tier.held_tokens, 1)


def _justified_block(tokens: int | None, geometry: Geometry) -> int | None:
    least = max(_LEAST_BLOCK_TOKENS, geometry.block_tokens // _SMALLER_BLOCK)
    return tokens if tokens is not None and least <= tokens <= _MOST_BLOCK_TOKENS else None


def _in_whole(engine: EngineTokens, geometry: Geometry) -> EngineTokens:
    """What the device's blocks would hold of tokens alone, as a plan counts them before windows and states.

    vLLM's own number of tokens leaves out what one longest sequence and the steps under way take of them
    (v1/core/kv_cache_utils.py, get_kv_cache_capacity), which is more than what cached prefixes keep.
    """
    if not geometry.bytes_per_prefix or not geometry.block_bytes or engine.gpu_blocks is None:
        return engine
    block = _justified_block(engine.block, geometry) or geometry.block_tokens
    block_bytes = geometry.block_bytes * block // geometry.block_tokens
    tokens = engine.gpu_blocks * block_bytes // geometry.kv_bytes_per_token_per_rank
    return replace(engine, by_tier={**engine.by_tier, Tier.GPU: tokens})


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
