"""What the engines of a resource count of their tiers, all together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kvtier_common.metrics import cpu_tier, disk_tier
from kvtier_common.metrics.text import Families
from kvtier_common.metrics.tier_metrics import CACHED_BY_SOURCE, CAPACITY_TOKENS, cached_tokens
from kvtier_common.tier import Tier

_ASKED: Final = b"vllm:prefix_cache_queries_total"
_LOAD_S: Final = b"vllm:kv_offload_load_time_total"
_COMPUTED: Final = b"vllm:request_prefill_kv_computed_tokens_sum"
_PREFILL_S: Final = b"vllm:request_prefill_time_seconds_sum"
_DEVICE_USE: Final = b"vllm:kv_cache_usage_perc"
_CAPACITY: Final = {Tier.CPU: cpu_tier.CAPACITY_BYTES.encode(), Tier.DISK: disk_tier.CAPACITY_BYTES.encode()}
_USED: Final = {Tier.CPU: cpu_tier.USED_BYTES.encode(), Tier.DISK: disk_tier.USED_BYTES.encode()}
_EVICTED: Final = {
    Tier.CPU: f"{cpu_tier.EVICTED_CHUNKS}_total".encode(),
    Tier.DISK: f"{disk_tier.EVICTED_CHUNKS}_total".encode(),
}
_GROWING: Final = cpu_tier.GROWING.encode()
_DEGRADED: Final = disk_tier.DEGRADED.encode()
_PAYS: Final = disk_tier.PAYS.encode()
READ: Final = (
    *(CACHED_BY_SOURCE, _ASKED, _LOAD_S, _COMPUTED, _PREFILL_S, _DEVICE_USE, _GROWING, _DEGRADED, _PAYS),
    *(name for names in (_CAPACITY, _USED, _EVICTED, CAPACITY_TOKENS) for name in names.values()),
)
"""Names of the samples of which something is read."""


@dataclass(frozen=True, slots=True)
class EngineFigures:
    """Counters since each engine's start and gauges as they are, of all engines that answered.

    Attributes:
        engines: How many answered.
        asked_tokens: Tokens of all prompts.
        hit_tokens: Of those, what each tier supplied.
        load_s: Seconds that loads from the tiers to the device took.
        prefill_tokens_per_s: Tokens that a second of a request's prefill computes; None before the first.
        capacity_bytes: Of the tiers whose backend tells.
        capacity_tokens: The same in tokens.
        used_share: How full each tier is, 0 to 1, where the backend tells; of the device what requests use.
        evicted_chunks: Chunks that left a tier to make room.
        growing: Engines whose CPU tier is still being taken.
        degraded: Engines that do without their disk, which cannot be used.
        unpaid: Engines that do without their disk because computing is sooner.
    """

    engines: int
    asked_tokens: int
    hit_tokens: Mapping[Tier, int]
    load_s: float
    prefill_tokens_per_s: float | None
    capacity_bytes: Mapping[Tier, int]
    capacity_tokens: Mapping[Tier, int]
    used_share: Mapping[Tier, float]
    evicted_chunks: Mapping[Tier, int]
    growing: int
    degraded: int
    unpaid: int

    @property
    def found_share(self) -> float | None:
        """Share of all prompt tokens that some tier supplied; None before the first prompt."""
        return sum(self.hit_tokens.values()) / self.asked_tokens if self.asked_tokens else None


def engine_figures(engines: Sequence[Families]) -> EngineFigures:
    """The figures of some engines, added up."""

    def total(name: bytes) -> float:
        return sum(each.total(name) for each in engines)

    def whole(names: Mapping[Tier, bytes]) -> dict[Tier, int]:
        return {
            tier: int(total(name)) for tier, name in names.items() if any(each.of(name) for each in engines)
        }

    hits = [cached_tokens(each) for each in engines]
    prefill_s, capacity = total(_PREFILL_S), whole(_CAPACITY)
    return EngineFigures(
        engines=len(engines),
        asked_tokens=int(total(_ASKED)),
        hit_tokens={tier: sum(each[tier] for each in hits) for tier in Tier},
        load_s=total(_LOAD_S),
        prefill_tokens_per_s=(total(_COMPUTED) / prefill_s or None) if prefill_s else None,
        capacity_bytes=capacity,
        capacity_tokens=whole(CAPACITY_TOKENS),
        used_share=_device_use(engines)
        | {tier: total(_USED[tier]) / size for tier, size in capacity.items() if size},
        evicted_chunks=whole(_EVICTED),
        growing=sum(each.total(_GROWING) > 0 for each in engines),
        degraded=sum(each.total(_DEGRADED) > 0 for each in engines),
        unpaid=sum(bool(each.of(_PAYS)) and each.total(_PAYS) == 0 for each in engines),
    )


def _device_use(engines: Sequence[Families]) -> dict[Tier, float]:
    """The mean over all engines, of which a pod may have several."""
    shares = [value for each in engines for _, value in each.of(_DEVICE_USE)]
    return {Tier.GPU: sum(shares) / len(shares)} if shares else {}
