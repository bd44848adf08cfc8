"""What a picker's configuration is made from, and what comes out."""

from dataclasses import dataclass

from kvtier_scorer.config.body_limits import BodyLimits, body_limits


@dataclass(frozen=True, slots=True)
class ScorerWeights:
    """Weights of the scorers; only their ratios matter. A scorer of weight 0 is left out."""

    queue: int
    kv_cache_utilization: int
    gpu_prefix: int
    cpu_prefix: int
    disk_prefix: int


@dataclass(frozen=True, slots=True)
class TierTokens:
    """Tokens that each tier of one pod holds.

    Attributes:
        gpu: None where the size of the device cache is not known: the picker then asks the engine.
        cpu: None without such a tier.
        disk: None without such a tier.
    """

    gpu: int | None
    cpu: int | None
    disk: int | None


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
    engine_tls: bool = False

    @property
    def bodies(self) -> BodyLimits:
        """Bounds of bodies, of kvtier's own picker."""
        return body_limits(self.max_prefix_tokens, self.max_body_bytes)


@dataclass(frozen=True, slots=True)
class Entries:
    """LRU capacities of the prefix scorers, per pod; None: no such scorer, or the picker asks the engine."""

    gpu_prefix: int | None
    cpu_prefix: int | None
    disk_prefix: int | None


@dataclass(frozen=True, slots=True)
class PickerConfig:
    """A picker's configuration.

    Attributes:
        version: The version it is for.
        tokens_per_entry: Tokens that one LRU entry stands for.
        entries: LRU capacities.
        text: The EndpointPickerConfig, as YAML.
        warnings: What does not work as the resource asks in this version, one line each.
        gpu_from_metrics: Whether the picker asks the engine for the size of its device cache.
    """

    version: str
    tokens_per_entry: int
    entries: Entries
    text: str
    warnings: tuple[str, ...] = ()
    gpu_from_metrics: bool = False


def entries_for(tokens: int | None, tokens_per_entry: int) -> int | None:
    """LRU entries for a tier: ceil(tokens / tokens per entry); None where the tier's size is None."""
    return None if tokens is None else -(-tokens // tokens_per_entry)
