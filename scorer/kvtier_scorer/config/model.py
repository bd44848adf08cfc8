"""What a picker's configuration is made from, and what comes out."""

from collections.abc import Mapping
from dataclasses import dataclass

from kvtier_common.tier import Tier
from kvtier_scorer.config.body_limits import BodyLimits, body_limits
from kvtier_scorer.config.frozen_map import FrozenMap

ScorerWeights = FrozenMap[str, int]
"""Weights by the scorers' names; only their ratios matter. A scorer of weight 0, or of none, is left out."""

TierTokens = FrozenMap[Tier, int | None]
"""Tokens that each tier of one pod holds. The device's cache is always among them: None where its size is not
known, which the picker then asks the engine for."""


@dataclass(frozen=True, slots=True)
class PickerInput:
    """What decides a picker's configuration.

    Attributes:
        weights: Weights of the scorers.
        tokens: What each tier of one pod holds.
        engine_block_tokens: Tokens in one KV block of the engine.
        max_prefix_tokens: Longest prompt that the engine takes; None if not known.
        version: The picker's version, `0.10` or `v0.10.0`; None for the one this package was tested with.
        max_body_bytes: Largest body of a request; None to follow `max_prefix_tokens`. kvtier's own alone
            has such a bound.
        uploads_bytes: What the gateways that ask it may hold of bodies; None for as much as usual.
        kv_events: Whether the engines publish KV events for the picker to follow; kvtier's own alone does.
        engine_tls: Whether the engines serve HTTPS; the inference extension's have an argument for it.
    """

    weights: ScorerWeights
    tokens: TierTokens
    engine_block_tokens: int
    max_prefix_tokens: int | None = None
    version: str | None = None
    kv_events: bool = False
    max_body_bytes: int | None = None
    uploads_bytes: int | None = None
    engine_tls: bool = False

    @property
    def bodies(self) -> BodyLimits:
        """Bounds of bodies, of kvtier's own picker."""
        return body_limits(self.max_prefix_tokens, self.max_body_bytes)


@dataclass(frozen=True, slots=True)
class PickerConfig:
    """A picker's configuration.

    Attributes:
        version: The version it is for.
        tokens_per_entry: Tokens that one LRU entry stands for.
        entries: LRU capacities of the tiers' prefix scorers, per pod; None where the picker asks the engine.
        text: The EndpointPickerConfig, as YAML.
        warnings: What does not work as the resource asks in this version, one line each.
        gpu_from_metrics: Whether the picker asks the engine for the size of its device cache.
        unread: Scorers with a weight that the picker does not have.
    """

    version: str
    tokens_per_entry: int
    entries: Mapping[Tier, int | None]
    text: str
    warnings: tuple[str, ...] = ()
    gpu_from_metrics: bool = False
    unread: tuple[str, ...] = ()


def entries_for(tokens: int | None, tokens_per_entry: int) -> int | None:
    """LRU entries for a tier: ceil(tokens / tokens per entry); None where the tier's size is None."""
    return None if tokens is None else -(-tokens // tokens_per_entry)
