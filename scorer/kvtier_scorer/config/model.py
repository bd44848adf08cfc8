"""What a picker's configuration is made from, what comes out, and why there may be none."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from kvtier_common.hints import RETAINED_SHARE
from kvtier_common.tier import OF_A_POD, Tier
from kvtier_scorer.config.contract import BodyLimits, HintPolicy, ShareFrom, body_limits

QUEUE: Final = "queue"
KV_CACHE_UTILIZATION: Final = "kv_cache_utilization"
PLUGINS: Final[Mapping[str, str]] = {
    QUEUE: "queue-scorer",
    KV_CACHE_UTILIZATION: "kv-cache-utilization-scorer",
}
"""The plugin of each scorer of our own picker that is not a tier's, in the order of the configuration."""
UPSTREAM_SCORERS: Final = (QUEUE, KV_CACHE_UTILIZATION)
"""Those of them that every other picker has too, as the same plugin."""
PREFIX_SCORERS: Final[Mapping[Tier, str]] = {tier: f"{tier.label}_prefix" for tier in OF_A_POD}
"""Who scores what a tier of a pod holds; one plugin, `prefix-cache-scorer`, is all of them."""
SCORER_NAMES: Final = (*PLUGINS, *PREFIX_SCORERS.values())
_K = TypeVar("_K")
_V = TypeVar("_V")


class PickerConfigError(ValueError):
    """The picker cannot be configured as asked; the message says what to change."""


class UnsupportedVersionError(PickerConfigError):
    """No configuration is known to work with that version of the picker."""


class NoScorerError(PickerConfigError):
    """No scorer is left: every weight is 0 or belongs to a tier that does not exist."""


class FrozenMap(Mapping[_K, _V]):
    """A mapping that does not change and can be hashed, as its values can, too."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[_K, _V]) -> None:
        self._values = dict(values)

    def __getitem__(self, key: _K) -> _V:
        return self._values[key]

    def __iter__(self) -> Iterator[_K]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __or__(self, others: Mapping[_K, _V]) -> "FrozenMap[_K, _V]":
        return FrozenMap({**self._values, **others})

    def __repr__(self) -> str:
        return f"FrozenMap({self._values!r})"


ScorerWeights = FrozenMap[str, int]
"""Weights by the scorers' names; only their ratios matter. A scorer of weight 0, or of none, is left out."""

TierTokens = FrozenMap[Tier, int | None]
"""Tokens that each tier of one pod holds. The device's cache is always among them: None where its size is not
known, which the picker then asks the engine for."""


@dataclass(frozen=True, slots=True)
class PickerInput:
    """What decides a picker's configuration."""

    weights: ScorerWeights
    tokens: TierTokens  # what each tier of one pod holds
    engine_block_tokens: int
    max_prefix_tokens: int | None = None  # longest prompt that the engine takes; None if not known
    # the picker's version, `0.10` or `v0.10.0`; None for the one this package was tested with
    version: str | None = None
    # whether the engines publish KV events for the picker to follow; kvtier's own alone does
    kv_events: bool = False
    # largest body of a request; None to follow `max_prefix_tokens`. kvtier's own alone has such a bound.
    max_body_bytes: int | None = None
    # what the gateways that ask it may hold of bodies; None for as much as usual
    uploads_bytes: int | None = None
    # whether the engines serve HTTPS; the inference extension's have an argument for it
    engine_tls: bool = False
    # whose hints reach the engines, and who says whose share a prompt's blocks are; kvtier's own alone knows
    hints: HintPolicy = HintPolicy.ACCEPT
    share_from: ShareFrom = ShareFrom.HEADER
    retained: float = RETAINED_SHARE  # of a pod's CPU tier that requests' hints may hold; likewise

    @property
    def bodies(self) -> BodyLimits:
        """Bounds of bodies, of kvtier's own picker."""
        return body_limits(self.max_prefix_tokens, self.max_body_bytes)


@dataclass(frozen=True, slots=True)
class PickerConfig:
    """A picker's configuration."""

    version: str
    tokens_per_entry: int
    # LRU capacities of the tiers' prefix scorers, per pod; None where the picker asks the engine
    entries: Mapping[Tier, int | None]
    text: str  # the EndpointPickerConfig, as YAML
    warnings: tuple[str, ...] = ()  # what does not work as the resource asks in this version, one line each
    gpu_from_metrics: bool = False  # whether the picker asks the engine for the size of its device cache
    unread: tuple[str, ...] = ()  # scorers with a weight that the picker does not have


def entries_for(tokens: int | None, tokens_per_entry: int) -> int | None:
    """LRU entries for a tier: ceil(tokens / tokens per entry); None where the tier's size is None."""
    return None if tokens is None else -(-tokens // tokens_per_entry)
