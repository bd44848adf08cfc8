"""The settings of kvtier's own picker: sections that other pickers do not have, and all of them together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final

import msgspec

from kvtier_common.hints import RETAINED_SHARE
from kvtier_common.tier import Tier
from kvtier_scorer.config.contract import (
    DEFAULT_MAX_BODY_BYTES,
    DEFAULT_TOTAL_BODY_BYTES,
    EVENTS_PORT,
    HintPolicy,
    ShareFrom,
    uploads_bytes,
)
from kvtier_scorer.config.strict import field_error

_STALE_AFTER_SCRAPES: Final = 5

Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]
DEFAULT_MAX_PREFIX_TOKENS: Final = 131072
"""What of a prompt is looked at where the configuration does not say: llm-d-router's defaultMaxPrefixTokens
(v0.9.0, dataproducer/approximateprefix)."""
ASSUMED_ENTRIES: Final = 31250
"""Entries of a tier whose size is not known yet: defaultLRUCapacityPerServer of the same file."""


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A mapping in which every field is known; `queue_depth` is written `queueDepth`."""


class Shed(StrEnum):
    """Which requests are refused while every pod is saturated."""

    SHEDDABLE = "Sheddable"
    ALL = "All"
    NEVER = "Never"


class Shedding(Section, frozen=True, kw_only=True):
    """`shedding`: when requests are refused with 429 rather than queued in the engines.

    A pod is saturated from either threshold on, or while its metrics are stale. The thresholds' defaults and
    the convention that a request of a negative priority is sheddable are those of the Gateway API inference
    extension (v1.5.0, saturationdetector/utilization/config.go and pkg/epp/util/request/sheddable.go).
    """

    # `Sheddable` refuses requests of a priority below 0, `All` every request, `Never` none
    shed: Shed = Shed.SHEDDABLE
    # requests waiting in a pod with which it is saturated
    queue_depth: Annotated[int, msgspec.Meta(ge=1)] = 5
    # used share of a pod's device cache with which it is saturated
    kv_cache_utilization: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.8


class Affinity(Section, frozen=True, kw_only=True):
    """`affinity`: pods that hold most of a prompt come before others, whatever the weighted sums say."""

    enabled: bool = True  # whether to do so; without it the sums alone decide, as in other pickers
    prompt_share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.5  # part of the prompt that a pod must hold
    # requests that it may have more than the least loaded pod, waiting or sent since its metrics were read,
    # before load counts again
    queue_slack: Annotated[int, msgspec.Meta(ge=1)] = 5


class Metrics(Section, frozen=True, kw_only=True):
    """`metrics`: how the engines' load is read."""

    # from one reading of a pod to the next. More than 200 is for pools whose readings would take a core of
    # their own.
    scrape_interval_ms: Annotated[int, msgspec.Meta(ge=50, le=10_000)] = 100
    # age from which a reading says nothing any more; five intervals where left out: an engine that is busy
    # may answer late, and one that hangs must be seen soon
    staleness_ms: Annotated[int, msgspec.Meta(ge=1)] | None = None

    def check(self, path: str) -> None:
        """Raises PickerConfigError: a reading would be stale before the next one can be there."""
        if self.staleness_ms is not None and self.staleness_ms <= self.scrape_interval_ms:
            raise field_error(
                f"{path}.stalenessMs",
                f"{self.staleness_ms} must be more than scrapeIntervalMs, {self.scrape_interval_ms}",
            )

    @property
    def scrape_interval_s(self) -> float:
        """`scrape_interval_ms` in seconds."""
        return self.scrape_interval_ms / 1000

    @property
    def staleness_s(self) -> float:
        """Age in seconds from which a reading says nothing any more."""
        return (self.staleness_ms or _STALE_AFTER_SCRAPES * self.scrape_interval_ms) / 1000


class Events(Section, frozen=True, kw_only=True):
    """`events`: vLLM's KV events, which say what each tier of a pod really holds."""

    enabled: bool = False  # whether to subscribe. A pod that sends none keeps its approximate index.
    # of the publisher on each pod; vLLM's default (vllm/config/kv_events.py, endpoint)
    port: Port = EVENTS_PORT
    # of the publisher's replays, vLLM's replay_endpoint; without one, events that were missed are made up for
    # only once the pod's tiers have filled anew
    replay_port: Port | None = None
    topic: str = ""  # prefix of the topics to take; vLLM's default topic is the empty one


class TokenizationMode(StrEnum):
    """How a prompt's tokens are found."""

    ESTIMATE = "Estimate"
    TOKENIZE = "Tokenize"
    TOKENIZER = "Tokenizer"


class Tokenization(Section, frozen=True, kw_only=True):
    """`tokenization`: how a prompt's tokens are found."""

    # `Estimate` takes 4 bytes of text for a token; `Tokenize` asks an engine's /tokenize; `Tokenizer` reads a
    # tokenizer.json
    mode: TokenizationMode = TokenizationMode.ESTIMATE
    path: str | None = None  # the tokenizer.json, with `Tokenizer` only
    # with `Tokenize`: an answer that takes longer is done without, by estimating
    timeout_ms: Annotated[int, msgspec.Meta(ge=1)] = 500

    def check(self, path: str) -> None:
        """Raises PickerConfigError: a path goes with `Tokenizer`, and only with it."""
        if self.mode is TokenizationMode.TOKENIZER and not self.path:
            raise field_error(f"{path}.path", "mode Tokenizer needs the path of a tokenizer.json")
        if self.mode is not TokenizationMode.TOKENIZER and self.path is not None:
            raise field_error(f"{path}.path", f"mode {self.mode} reads no file; leave it out")


class Limits(Section, frozen=True, kw_only=True):
    """`limits`: what requests may take of the picker."""

    # largest body; a larger one is refused with 413
    max_body_bytes: Annotated[int, msgspec.Meta(ge=1024, le=1 << 30)] = DEFAULT_MAX_BODY_BYTES
    # of all bodies at a time; one that finds no memory is refused with 503
    total_body_bytes: Annotated[int, msgspec.Meta(ge=1024, le=1 << 36)] = DEFAULT_TOTAL_BODY_BYTES
    # of all bodies that are on their way, by what clients announce; whoever takes most for longest is refused
    # with 503. Four of the largest where left out, and 256 MiB at least.
    upload_bytes: Annotated[int, msgspec.Meta(ge=1024, le=1 << 36)] | None = None

    @property
    def most_upload_bytes(self) -> int:
        """`upload_bytes`, or what it is where left out."""
        return uploads_bytes(self.max_body_bytes) if self.upload_bytes is None else self.upload_bytes

    def check(self, path: str) -> None:
        """Raises PickerConfigError: the largest body would find no place."""
        totals = {"totalBodyBytes": self.total_body_bytes, "uploadBytes": self.most_upload_bytes}
        for name, total_bytes in totals.items():
            if total_bytes < self.max_body_bytes:
                raise field_error(
                    f"{path}.{name}", f"{total_bytes} must be at least maxBodyBytes, {self.max_body_bytes}"
                )


@dataclass(frozen=True, slots=True)
class ScorerSetting:
    """One scorer; its weight is more than 0, and only the ratios matter."""

    name: str
    weight: float


@dataclass(frozen=True, slots=True)
class PrefixSettings:
    """What the prefix scorers share."""

    block_tokens: int
    max_tokens: int  # what of a longer prompt is looked at
    # blocks that each tier with a scorer holds, a pod; None where the engine has to be asked
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
    """Everything that the picker is configured with: each scorer once, and at least one."""

    scorers: tuple[ScorerSetting, ...]
    prefix: PrefixSettings | None  # None where no prefix scorer has a weight: prompts are then not hashed
    shedding: Shedding = field(default_factory=Shedding)
    metrics: Metrics = field(default_factory=Metrics)
    events: Events = field(default_factory=Events)
    tokenization: Tokenization = field(default_factory=Tokenization)
    limits: Limits = field(default_factory=Limits)
    affinity: Affinity = field(default_factory=Affinity)
    hints: HintPolicy = HintPolicy.ACCEPT
    share_from: ShareFrom = ShareFrom.HEADER
    retained: float = RETAINED_SHARE  # of a pod's CPU tier that prompts may be kept in
