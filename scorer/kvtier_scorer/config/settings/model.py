"""The settings of kvtier's own picker, once they are known to make sense."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kvtier_common.tier import Tier
from kvtier_scorer.config.settings.sections import (
    Affinity,
    Events,
    Limits,
    Metrics,
    Shedding,
    Tokenization,
)

DEFAULT_MAX_PREFIX_TOKENS: Final = 131072
"""What of a prompt is looked at where the configuration does not say: llm-d-router's defaultMaxPrefixTokens
(v0.9.0, dataproducer/approximateprefix)."""

ASSUMED_ENTRIES: Final = 31250
"""Entries of a tier whose size is not known yet: defaultLRUCapacityPerServer of the same file."""


@dataclass(frozen=True, slots=True)
class ScorerSetting:
    """One scorer.

    Attributes:
        name: Name of the scorer.
        weight: More than 0; only the ratios matter.
    """

    name: str
    weight: float


@dataclass(frozen=True, slots=True)
class PrefixSettings:
    """What the prefix scorers share.

    Attributes:
        block_tokens: Tokens in a block, one entry of the index.
        max_tokens: What of a longer prompt is looked at.
        entries: Blocks that each tier with a scorer holds, a pod; None where the engine has to be asked.
    """

    block_tokens: int
    max_tokens: int
    entries: Mapping[Tier, int | None]

    @property
    def max_blocks(self) -> int:
        """Most blocks of one prompt that are looked at, 1 at least."""
        return max(self.max_tokens // self.block_tokens, 1)

    @property
    def first_entries(self) -> Mapping[Tier, int]:
        """Blocks to take for a pod's tiers until its engine has told their true sizes."""
        return {
            tier: ASSUMED_ENTRIES if entries is None else entries for tier, entries in self.entries.items()
        }


@dataclass(frozen=True, slots=True)
class PickerSettings:
    """Everything that the picker is configured with.

    Attributes:
        scorers: At least one, each once.
        prefix: None where no prefix scorer has a weight: prompts are then not hashed.
        shedding: When requests are refused.
        metrics: How the engines' load is read.
        events: vLLM's KV events.
        tokenization: How a prompt's tokens are found.
        limits: What a request may take of the picker.
        affinity: When what a pod holds comes before its weighted sum.
    """

    scorers: tuple[ScorerSetting, ...]
    prefix: PrefixSettings | None
    shedding: Shedding = field(default_factory=Shedding)
    metrics: Metrics = field(default_factory=Metrics)
    events: Events = field(default_factory=Events)
    tokenization: Tokenization = field(default_factory=Tokenization)
    limits: Limits = field(default_factory=Limits)
    affinity: Affinity = field(default_factory=Affinity)
