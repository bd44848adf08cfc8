"""What vLLM's /metrics say about one engine's cache."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kvtier_common.metrics.text import Families, read_families
from kvtier_common.metrics.tier_metrics import CACHED_BY_SOURCE, CACHED_TOKENS, cached_tokens
from kvtier_common.tier import Tier

_RUNNING: Final = b"vllm:num_requests_running"
_WAITING: Final = b"vllm:num_requests_waiting"
_PROMPT_TOKENS: Final = b"vllm:prompt_tokens_total"
_LOADED_BYTES: Final = b"vllm:kv_offload_load_bytes_total"
_TTFT_S: Final = b"vllm:time_to_first_token_seconds_sum"
_TTFT_COUNT: Final = b"vllm:time_to_first_token_seconds_count"
WANTED: Final = (
    CACHED_BY_SOURCE,
    _RUNNING,
    _WAITING,
    _PROMPT_TOKENS,
    _LOADED_BYTES,
    _TTFT_S,
    _TTFT_COUNT,
    *CACHED_TOKENS.values(),
)
"""What of an engine's metrics is read."""


@dataclass(frozen=True, slots=True)
class EngineMetrics:
    """Counters of one engine since it started; all its data-parallel parts together."""

    running_requests: int = 0  # requests being computed
    waiting_requests: int = 0  # requests in the queue
    prompt_tokens: int = 0  # tokens of all prompts
    # of these, tokens that came from a cache, by tier (device, cpu, disk)
    cached_tokens: Mapping[str, int] = field(default_factory=dict)
    loaded_bytes: int = 0  # bytes loaded from the tiers into the device
    ttft_s: float = 0.0  # sum of all times to first token, as the engine saw them
    ttft_count: int = 0  # how many there were
    # tokens that each tier beyond the device holds now, as far as the backend says
    held_tokens: Mapping[Tier, int] = field(default_factory=dict)

    @property
    def hit_rate(self) -> float | None:
        """Share of prompt tokens that came from a cache; None before the first prompt."""
        return sum(self.cached_tokens.values()) / self.prompt_tokens if self.prompt_tokens else None

    @property
    def mean_ttft_s(self) -> float | None:
        """Mean time to first token; None before the first."""
        return self.ttft_s / self.ttft_count if self.ttft_count else None

    def since(self, before: "EngineMetrics") -> "EngineMetrics":
        """What was counted after `before`; the gauges as they are now."""
        return EngineMetrics(
            running_requests=self.running_requests,
            waiting_requests=self.waiting_requests,
            prompt_tokens=self.prompt_tokens - before.prompt_tokens,
            cached_tokens={
                tier: tokens - before.cached_tokens.get(tier, 0)
                for tier, tokens in self.cached_tokens.items()
            },
            loaded_bytes=self.loaded_bytes - before.loaded_bytes,
            ttft_s=self.ttft_s - before.ttft_s,
            ttft_count=self.ttft_count - before.ttft_count,
            held_tokens=self.held_tokens,
        )


def parse_metrics(text: str) -> EngineMetrics:
    """Read the Prometheus text of one vLLM server; a ValueError where it is none."""
    families = read_families(text.encode(), WANTED)
    if text and not families.samples:
        raise ValueError(f"these are not vLLM's metrics: {families.start!r}")
    return engine_metrics(families)


def engine_metrics(families: Families) -> EngineMetrics:
    """What the families of WANTED say about an engine."""
    return EngineMetrics(
        running_requests=int(families.total(_RUNNING)),
        waiting_requests=int(families.total(_WAITING)),
        prompt_tokens=int(families.total(_PROMPT_TOKENS)),
        cached_tokens={
            "device" if tier is Tier.GPU else tier.label: tokens
            for tier, tokens in cached_tokens(families).items()
        },
        loaded_bytes=int(families.total(_LOADED_BYTES)),
        ttft_s=families.total(_TTFT_S),
        ttft_count=int(families.total(_TTFT_COUNT)),
        held_tokens={
            # what engines share each of them tells whole
            tier: int(max(value for _, value in families.of(name)) if tier.shared else families.total(name))
            for tier, name in CACHED_TOKENS.items()
            if families.of(name)
        },
    )
