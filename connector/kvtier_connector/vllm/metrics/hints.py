"""What hints and tenants come to tells Prometheus, through vLLM's own /metrics."""

from collections.abc import Mapping
from typing import Final

from vllm.v1.kv_offload.base import (
    OffloadingCounterMetadata,
    OffloadingGaugeMetadata,
    OffloadingMetricMetadata,
)

from kvtier_common.metrics import hints as names
from kvtier_common.tier import Tier
from kvtier_connector.core.index.index import BlockIndex
from kvtier_connector.vllm.upstream.engine import OffloadingConnectorStats

DEFINITIONS: Final[dict[str, OffloadingMetricMetadata]] = {
    names.REFUSED: OffloadingCounterMetadata(
        "Hints of requests that were passed over, by which it was, or unknown, or form.", (names.REASON,)
    ),
    names.NOT_GRANTED: OffloadingCounterMetadata(
        "Chunks that left although a hint was to keep them, as hints kept all that they may.", (names.TIER,)
    ),
    names.RETAINED_BYTES: OffloadingGaugeMetadata("Bytes of chunks that only hints keep.", (names.TIER,)),
    names.TENANT_HELD_BYTES: OffloadingGaugeMetadata(
        "Bytes of chunks that a tenant holds, and all others together.", (names.TENANT, names.TIER)
    ),
    names.TENANT_STORED_BYTES: OffloadingCounterMetadata(
        "Bytes of chunks that a tenant stored in memory.", (names.TENANT,)
    ),
    names.TENANT_ASKED_TOKENS: OffloadingCounterMetadata(
        "Tokens of a tenant's requests that the device did not have, whether a tier had them or not.",
        (names.TENANT,),
    ),
    names.TENANT_HIT_TOKENS: OffloadingCounterMetadata(
        "Tokens that a tenant's requests loaded, from whichever tier.", (names.TENANT,)
    ),
    names.TENANT_SAVED_SECONDS: OffloadingCounterMetadata(
        "Seconds of computing that those would have taken, by the engine's own pace; 0 without tiers behind "
        "memory, where that is not measured.",
        (names.TENANT,),
    ),
}


_Series = tuple[str, tuple[str, ...]]  # a metric's name, and its labels' values


class HintMetrics:
    """Hands the numbers out when they changed. Tenants' are there only if some are listed."""

    def __init__(self, *, has_tenants: bool, chunk_bytes: int) -> None:
        self._has_tenants = has_tenants
        self._chunk_bytes = chunk_bytes
        self._last_gauges: dict[_Series, int] = {}
        self._not_granted: dict[Tier, int] = {}
        self._counters: dict[_Series, float] = {}

    def count_refused(self, refused: Mapping[str, int]) -> None:
        """Count hints that were passed over."""
        for reason, count in refused.items():
            self._count((names.REFUSED, (reason,)), count)

    def count_stored(self, tenant: str, chunks: int) -> None:
        """Count chunks that a tenant's request stores."""
        self._count_tenant(names.TENANT_STORED_BYTES, tenant, chunks * self._chunk_bytes)

    def count_asked(self, tenant: str, tokens: int) -> None:
        """Count tokens for which a tenant's request asks the tiers."""
        self._count_tenant(names.TENANT_ASKED_TOKENS, tenant, tokens)

    def count_hits(self, tenant: str, tokens: int, seconds: float) -> None:
        """Count tokens that a tenant's request loads, and what computing them would have taken."""
        self._count_tenant(names.TENANT_HIT_TOKENS, tenant, tokens)
        self._count_tenant(names.TENANT_SAVED_SECONDS, tenant, seconds)

    def add_to(
        self, stats: OffloadingConnectorStats | None, indexes: Mapping[Tier, BlockIndex]
    ) -> OffloadingConnectorStats | None:
        """Add what changed since the last call; most engines hear of no hint."""
        is_weighed = any(index.is_weighed for index in indexes.values())
        if not (is_weighed or self._counters or self._last_gauges):
            return stats
        gauges = dict[_Series, int]()
        for tier, index in indexes.items():
            self._look_at(tier, index, gauges)
        changed = {each: value for each, value in gauges.items() if self._last_gauges.get(each, 0) != value}
        if not changed and not self._counters:
            return stats
        stats = stats or OffloadingConnectorStats()
        for (name, labels), value in changed.items():
            stats.set_gauge(name, value, labels)
        for (name, labels), count in self._counters.items():
            stats.increase_counter(name, count, labels)
        self._last_gauges.update(changed)
        self._counters.clear()
        return stats

    def _look_at(self, tier: Tier, index: BlockIndex, gauges: dict[_Series, int]) -> None:
        index.sweep()
        gauges[names.RETAINED_BYTES, (tier.label,)] = index.retained * self._chunk_bytes
        before = self._not_granted.get(tier, 0)
        if index.not_granted != before:
            self._not_granted[tier] = index.not_granted
            # A disk that has come back has an index that counts from 0.
            new = index.not_granted - (before if before < index.not_granted else 0)
            self._count((names.NOT_GRANTED, (tier.label,)), new)
        if self._has_tenants:
            for tenant, held in index.held_by_tenant.items():
                gauges[names.TENANT_HELD_BYTES, (tenant or names.OTHER, tier.label)] = (
                    held * self._chunk_bytes
                )

    def _count_tenant(self, name: str, tenant: str, count: float) -> None:
        if self._has_tenants and count:
            self._count((name, (tenant or names.OTHER,)), count)

    def _count(self, series: _Series, count: float) -> None:
        self._counters[series] = self._counters.get(series, 0) + count
