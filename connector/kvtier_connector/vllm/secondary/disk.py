"""Our disk tier behind vLLM's own CPU tier.

A disk may hang for as long as it likes, and vLLM's memory is wanted back. So the disk never gets that memory
itself (core/disk/io/staged.py): a job whose disk hangs is reported as failed and its memory taken back.
"""

import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

from typing_extensions import override
from vllm.v1.kv_offload.base import Locality, OffloadingEvent, OffloadingMetricMetadata

from kvtier_connector.config import KEY_BYTES, align_to_disk
from kvtier_connector.core.behind.progress import Progress
from kvtier_connector.core.behind.tier import TierBehind
from kvtier_connector.core.disk.files.store import StoreRequest
from kvtier_connector.vllm.behind.disk import holder, open_tier, replica_folder
from kvtier_connector.vllm.fingerprint import tier_fingerprint
from kvtier_connector.vllm.metrics.disk_tier import DEFINITIONS
from kvtier_connector.vllm.secondary.settings import parse_disk
from kvtier_connector.vllm.secondary.tier import SecondaryTier
from kvtier_connector.vllm.upstream.compat import log

_PATIENCE: Final = 4  # a job may take so many times as long as one chunk


class KVTierDisk(SecondaryTier):
    """Chunks on disk, for vLLM's own tiering.

    Raises SettingError: A setting is unknown, missing or bad, or the folder or the capacity cannot be used;
    DiskError: another engine has the folder, or the disk is full, read-only or failing.
    """

    where = Locality.LOCAL

    @classmethod
    @override
    def build_metric_definitions(cls, extra_config: dict[str, Any]) -> dict[str, OffloadingMetricMetadata]:
        """Return the disk's metrics."""
        return DEFINITIONS

    @override
    def take_events(self) -> Iterable[OffloadingEvent]:
        """Take what was stored and removed since the last call."""
        if self._events:
            yield from self._events
            self._events.clear()

    @override
    def _open(self, settings: dict[str, object]) -> TierBehind:
        parsed = parse_disk(settings, self._entry)
        self._timeout_s = parsed.timeout_s
        self._answered_at_s, self._silent = time.monotonic(), False
        events = self._offloading_spec.kv_events_config.enable_kv_cache_events
        self._events: list[OffloadingEvent] | None = [] if events else None
        spec, row_bytes = self._offloading_spec, self._memory.row_bytes
        request = StoreRequest(
            path=replica_folder(parsed.path, spec.config.parallel.data_parallel_index),
            capacity_bytes=parsed.capacity_bytes,
            block_bytes=align_to_disk(row_bytes),
            key_bytes=KEY_BYTES,
            fingerprint=tier_fingerprint(spec, row_bytes, parsed.namespace, self._entry),
            direct=parsed.direct_io,
            holder=holder(spec.config.model.name),
        )
        return open_tier(
            request,
            self._memory.lend,
            memory_slots=self._memory.rows,
            chunk_tokens=self._chunk_tokens,
            write_bytes_per_hour=parsed.write_bytes_per_hour,
            timeout_s=parsed.timeout_s,
            staged=True,
        )

    @override
    def _lets_go(self) -> bool:
        self._memory.take_all_back()
        return True

    @property
    @override
    def _is_off(self) -> bool:
        return self._silent or super()._is_off

    @override
    def _poll(self) -> bool:
        """Take note of what the disk has done, and give up what it does not do."""
        now_s = time.monotonic()
        answered = super()._poll()
        if answered:
            self._answered_at_s, self._silent = now_s, False
        if not self._is_off:
            late = self._jobs.began_before(now_s - _PATIENCE * self._timeout_s)
            for job in late:
                self._jobs.give_up(job)
            if any(self._answered_at_s < job.began_s for job in late):
                self._silent = True
                log.warning("kvtier: the disk tier is off: it does not answer; serving from memory")
        if self._is_off:
            self._give_up_all()
        return answered

    @override
    def _apply(self, progress: Progress) -> None:
        super()._apply(progress)
        self._publish(progress.stored, removed=False)
        self._publish(progress.evicted + progress.lost, removed=True)

    def _publish(self, keys: Sequence[bytes], *, removed: bool) -> None:
        if self._events is not None and keys:
            self._events.append(
                OffloadingEvent(
                    self._keys.of_vllm(keys),
                    self.medium,
                    removed,
                    locality=self.locality,
                    removal_expected=True,
                )
            )
