"""What the tiers behind memory tell Prometheus, through vLLM's own /metrics."""

from types import ModuleType
from typing import Final

from kvtier_common.metrics import disk_tier, remote_tier
from kvtier_common.tier import Tier
from kvtier_connector.core.behind.tier import TierBehind
from kvtier_connector.vllm.upstream.engine import OffloadingConnectorStats

NAMES: Final[dict[Tier, ModuleType]] = {Tier.DISK: disk_tier, Tier.REMOTE: remote_tier}
"""The names of each tier's numbers."""


class BehindMetrics:
    """Hands one tier's numbers out when they changed."""

    def __init__(self, tier: TierBehind, chunk_tokens: int) -> None:
        self._tier = tier
        self._names = NAMES[tier.tier]
        self._chunk_tokens = chunk_tokens
        self._last: tuple[int, bool, bool] | None = None
        self._hits = 0
        self._warmed = 0

    def count_hits(self, count: int) -> None:
        """Count chunks that a request found there."""
        self._hits += count

    def count_warmed(self, count: int) -> None:
        """Count chunks that were in memory before the engine served."""
        self._warmed += count

    def add_to(
        self, stats: OffloadingConnectorStats | None, *, pays: bool = True
    ) -> OffloadingConnectorStats | None:
        """Add what changed since the last call."""
        tier, names = self._tier, self._names
        counts = tier.take_counts()
        now = tier.used, tier.is_down, pays
        added = {
            names.LOAD_BYTES: counts.load_bytes,
            names.LOAD_SECONDS: counts.load_seconds,
            names.STORE_BYTES: counts.store_bytes,
            names.STORE_SECONDS: counts.store_seconds,
            names.HIT_CHUNKS: self._hits,
            names.WARMED_CHUNKS: self._warmed,
            names.EVICTED_CHUNKS: counts.evicted,
            names.CORRUPT_CHUNKS: counts.corrupt,
            names.FAILED_CHUNKS: counts.failed,
            names.DROPPED_CHUNKS: counts.dropped,
        }
        if tier.is_asked:
            added |= {names.ABSENT_CHUNKS: counts.absent, names.VANISHED_CHUNKS: counts.vanished}
        if now == self._last and not any(added.values()):
            return stats
        self._hits = self._warmed = 0
        self._last = now
        stats = stats or OffloadingConnectorStats()
        stats.set_gauge(names.CAPACITY_BYTES, tier.slots * tier.block_bytes)
        stats.set_gauge(names.CAPACITY_TOKENS, tier.slots * self._chunk_tokens)
        stats.set_gauge(names.USED_BYTES, tier.used * tier.block_bytes)
        stats.set_gauge(names.CACHED_TOKENS, tier.used * self._chunk_tokens)
        stats.set_gauge(names.DEGRADED, int(tier.is_down))
        stats.set_gauge(names.PAYS, int(pays))
        for name, value in added.items():
            stats.increase_counter(name, value)
        return stats
