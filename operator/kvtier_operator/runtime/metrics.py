"""What vLLM's /metrics say about one engine's cache."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

# vllm/v1/metrics/loggers.py (0.32): the tier that supplied a prompt's cached tokens, counted at admission.
_CACHED_BY_SOURCE = "vllm:prompt_tokens_cached_by_source_total"
_TIER_OF_SOURCE = {"device": "device", "host": "cpu", "external_unspecified": "cpu", "disk": "disk"}
# kvtier_connector/vllm/metrics/ has these; other backends do not say how many tokens they hold.
_CPU_CACHED_TOKENS = "vllm:kvtier_cpu_cached_tokens"
_DISK_CACHED_TOKENS = "vllm:kvtier_disk_cached_tokens"


@dataclass(frozen=True, slots=True)
class EngineMetrics:
    """Counters of one engine since it started; all its data-parallel parts together.

    Attributes:
        running_requests: Requests being computed.
        waiting_requests: Requests in the queue.
        prompt_tokens: Tokens of all prompts.
        cached_tokens: Of these, tokens that came from a cache, by tier (device, cpu, disk).
        loaded_bytes: Bytes loaded from the tiers into the device.
        ttft_s: Sum of all times to first token, as the engine saw them.
        ttft_count: How many there were.
        cpu_tier_tokens: Tokens that the CPU tier holds now; None if the backend does not say.
        disk_tier_tokens: The same of the disk tier.
    """

    running_requests: int = 0
    waiting_requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: Mapping[str, int] = field(default_factory=dict)
    loaded_bytes: int = 0
    ttft_s: float = 0.0
    ttft_count: int = 0
    cpu_tier_tokens: int | None = None
    disk_tier_tokens: int | None = None

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
            cpu_tier_tokens=self.cpu_tier_tokens,
            disk_tier_tokens=self.disk_tier_tokens,
        )


def parse_metrics(text: str) -> EngineMetrics:
    """Read the Prometheus text of one vLLM server.

    Raises:
        ValueError: It is not Prometheus' text format.
    """
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    cached = {"device": 0, "cpu": 0, "disk": 0}
    for sample in _named(samples, _CACHED_BY_SOURCE):
        tier = _TIER_OF_SOURCE.get(sample.labels.get("source", ""))
        if tier:
            cached[tier] += int(sample.value)
    return EngineMetrics(
        running_requests=_total(samples, "vllm:num_requests_running"),
        waiting_requests=_total(samples, "vllm:num_requests_waiting"),
        prompt_tokens=_total(samples, "vllm:prompt_tokens_total"),
        cached_tokens=cached,
        loaded_bytes=_total(samples, "vllm:kv_offload_load_bytes_total"),
        ttft_s=sum(sample.value for sample in _named(samples, "vllm:time_to_first_token_seconds_sum")),
        ttft_count=_total(samples, "vllm:time_to_first_token_seconds_count"),
        cpu_tier_tokens=_told(samples, _CPU_CACHED_TOKENS),
        disk_tier_tokens=_told(samples, _DISK_CACHED_TOKENS),
    )


def _named(samples: Iterable[Sample], name: str) -> list[Sample]:
    return [sample for sample in samples if sample.name == name]


def _told(samples: Iterable[Sample], name: str) -> int | None:
    found = _named(samples, name)
    return _total(found, name) if found else None


def _total(samples: Iterable[Sample], name: str) -> int:
    return int(sum(sample.value for sample in _named(samples, name)))
