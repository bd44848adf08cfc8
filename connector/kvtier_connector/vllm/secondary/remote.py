"""Our remote tier behind vLLM's own CPU tier.

It moves bytes straight between sockets and vLLM's memory. Each value has a deadline, after which its socket
is closed and nothing is written late, so a job ends by itself soon, and memory is given back when it has.
"""

from typing import Any, ClassVar

from typing_extensions import override
from vllm.v1.kv_offload.base import Locality, OffloadingMetricMetadata
from vllm.v1.metrics.cache_hit_source import CacheHitSource

from kvtier_connector.core.behind.tier import TierBehind
from kvtier_connector.vllm.behind.remote import open_remote_tier
from kvtier_connector.vllm.fingerprint import tier_fingerprint
from kvtier_connector.vllm.metrics.remote_tier import DEFINITIONS
from kvtier_connector.vllm.secondary.settings import parse_remote
from kvtier_connector.vllm.secondary.tier import SecondaryTier


class KVTierRemote(SecondaryTier):
    """Chunks in a store that engines share, for vLLM's own tiering.

    It tells vLLM of no events: a store evicts by itself, and what it has any engine finds. Raises
    SettingError: a setting is unknown, missing or bad.
    """

    where = Locality.REMOTE
    cache_hit_source: ClassVar[CacheHitSource] = CacheHitSource.EXTERNAL_UNSPECIFIED

    @classmethod
    @override
    def build_metric_definitions(cls, extra_config: dict[str, Any]) -> dict[str, OffloadingMetricMetadata]:
        """Return the store's metrics."""
        return DEFINITIONS

    @override
    def _open(self, settings: dict[str, object]) -> TierBehind:
        parsed, namespace = parse_remote(settings, self._entry)
        known = tier_fingerprint(self._offloading_spec, self._memory.row_bytes, namespace, self._entry)
        self._remote = open_remote_tier(
            parsed,
            lambda: known,
            self._memory.lend,
            block_bytes=self._memory.row_bytes,
            memory_slots=self._memory.rows,
        )
        return self._remote

    @override
    def _lets_go(self) -> bool:
        return self._remote.stop()
