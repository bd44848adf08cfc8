"""Our disk tier behind vLLM's own CPU tier: an entry of `secondary_tiers` of its TieringOffloadingSpec.

vLLM reuses the memory of a job as soon as the job is reported, and a request waits until it is. So the disk
never gets that memory itself (core/disk/io/staged.py): a job whose disk hangs is reported as failed and its
memory taken back. An exception would end the engine: whatever goes wrong, the tier goes quiet instead.
"""

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from math import inf
from typing import Any, ClassVar, Final

import numpy as np
from typing_extensions import override
from vllm.v1.kv_offload.base import (
    Locality,
    LookupResult,
    Medium,
    OffloadingEvent,
    OffloadingMetricMetadata,
    OffloadingSpec,
    OffloadKey,
    ReqContext,
    RequestOffloadingContext,
)
from vllm.v1.kv_offload.tiering.backpressure import BackpressureDetector
from vllm.v1.kv_offload.tiering.base import JobResult, SecondaryTierManager, TransferJob

from kvtier_common.metrics.disk_tier import DEGRADED
from kvtier_connector.complete import refusals
from kvtier_connector.config import KEY_BYTES, disk_aligned
from kvtier_connector.core.behind.progress import Progress
from kvtier_connector.core.disk.files.store import StoreRequest
from kvtier_connector.core.disk.tier import DiskTier
from kvtier_connector.vllm import secondary
from kvtier_connector.vllm.behind.disk import holder, open_tier, replica_folder
from kvtier_connector.vllm.fingerprint import tier_fingerprint
from kvtier_connector.vllm.metrics.behind import BehindMetrics
from kvtier_connector.vllm.metrics.disk_tier import DEFINITIONS
from kvtier_connector.vllm.upstream.compat import log
from kvtier_connector.vllm.upstream.engine import OffloadingConnectorStats

_PATIENCE: Final = 4  # a job may take so many times as long as one chunk
_LOOK_S: Final = 0.05


class KVTierDisk(SecondaryTierManager):  # type: ignore[misc] # vLLM has no types
    """Chunks on disk, for vLLM's own tiering.

    Raises SettingError: A setting is unknown, missing or bad, or the folder or the capacity cannot be used;
    DiskError: another engine has the folder, or the disk is full, read-only or failing.
    """

    medium: ClassVar[Medium] = Medium.STORAGE

    def __init__(
        self,
        offloading_spec: OffloadingSpec,
        primary_kv_view: memoryview,
        tier_type: str,
        backpressure_detector: BackpressureDetector | None = None,
        **settings: object,
    ) -> None:
        super().__init__(offloading_spec, primary_kv_view, tier_type, backpressure_detector)
        self.locality = Locality.LOCAL
        self._memory = secondary.LentMemory(primary_kv_view)
        self._keys = secondary.DiskKeys()
        self._jobs = secondary.Jobs(self._memory.take_back)
        self._answered_at_s = time.monotonic()
        self._silent = self._broken = False
        self._reported_degraded = False
        events = offloading_spec.kv_events_config.enable_kv_cache_events
        self._events: list[OffloadingEvent] | None = [] if events else None

        entry = secondary.entry_path(offloading_spec.extra_config.get("secondary_tiers"), settings)
        with ExitStack() as undo, refusals(), secondary.errors_named(entry):
            undo.callback(self._memory.close)
            parsed = secondary.parse_settings(settings, entry)
            self._timeout_s = parsed.timeout_s
            self._disk = self._open(parsed, entry)
            undo.pop_all()
        self._metrics = BehindMetrics(self._disk, self._chunk_tokens)

    @classmethod
    @override
    def build_metric_definitions(cls, extra_config: dict[str, Any]) -> dict[str, OffloadingMetricMetadata]:
        """Return the disk's metrics."""
        return DEFINITIONS

    @override
    def lookup(self, key: OffloadKey, req_context: ReqContext) -> LookupResult:
        """Tell at once whether a chunk can be loaded; one that is being written will be."""
        with self._quietly():
            fixed = self._keys.on_disk(key)
            if self._is_off or fixed in self._jobs.given_up:
                return LookupResult.MISS
            if self._disk.holds(fixed):
                return LookupResult.HIT
            if self._jobs.waits_for(fixed, loads=False):
                return LookupResult.RETRY
        return LookupResult.MISS

    @override
    def touch(self, keys: Collection[OffloadKey], req_context: ReqContext) -> None:
        """Make chunks the most recently used."""
        with self._quietly():
            self._disk.touch(list(dict.fromkeys(map(self._keys.on_disk, keys))))

    @override
    def on_new_request(self, req_context: ReqContext) -> RequestOffloadingContext:
        """Have only new chunks offered, not those that a request found cached."""
        return RequestOffloadingContext()

    @override
    def submit_load(self, job_metadata: TransferJob) -> None:
        """Begin to read chunks; those that have gone since they were looked up fail."""
        asked = self._keys.slots(job_metadata)
        job = secondary.Job(job_metadata.job_id, time.monotonic(), loads=True, failed=True)
        with self._quietly():
            loadable = {key: slot for key, slot in asked.items() if self._can_load(key)}
            if loadable:
                self._disk.load(list(loadable), np.array(list(loadable.values()), np.int32))
            job.waiting, job.failed = loadable, len(loadable) < len(asked)
        self._jobs.begin(job)

    @override
    def submit_store(self, job_metadata: TransferJob) -> None:
        """Begin to write those chunks that the disk lacks, as far as it keeps up."""
        asked = self._keys.slots(job_metadata)
        job = secondary.Job(job_metadata.job_id, time.monotonic(), loads=False, failed=True)
        progress = Progress()
        with self._quietly():
            lacking = self._disk.lacking(list(asked))
            new = [] if self._is_off else [key for key in lacking if key not in self._jobs.given_up]
            wanted = self._disk.admit(new)
            if wanted:
                self._disk.store(wanted, np.array([asked[key] for key in wanted], np.int32), progress)
            job.waiting = {key: asked[key] for key in wanted}
            job.failed = self._is_off or len(wanted) < len(lacking)
        self._jobs.begin(job)
        self._apply(progress)

    @override
    def get_finished_jobs(self) -> Iterable[JobResult]:
        """Return the jobs that ended since the last call."""
        self._poll()
        return [self._result(job) for job in self._jobs.take_ended()]

    @override
    def drain_jobs(self) -> None:
        """Return when no job is under way; a disk that hangs has its jobs fail."""
        self._poll()
        while self._jobs:
            self._disk.wait(_LOOK_S)
            self._poll()

    @override
    def take_events(self) -> Iterable[OffloadingEvent]:
        """Return what was stored and removed since the last call."""
        if self._events:
            yield from self._events
            self._events.clear()

    @override
    def get_stats(self) -> OffloadingConnectorStats | None:
        """Return what changed since the last call, or None."""
        stats = self._metrics.add_to(None)
        degraded = self._is_off
        if degraded or self._reported_degraded:
            self._reported_degraded = degraded
            stats = stats or OffloadingConnectorStats()
            stats.set_gauge(DEGRADED, int(degraded))
        return stats

    @override
    def shutdown(self) -> None:
        """Let go of the disk, and of the memory, also if the disk hangs."""
        self._disk.close()
        self._memory.close()

    def _open(self, settings: secondary.SecondarySettings, entry: str) -> DiskTier:
        spec, row_bytes = self._offloading_spec, self._memory.row_bytes
        request = StoreRequest(
            path=replica_folder(settings.path, spec.config.parallel.data_parallel_index),
            capacity_bytes=settings.capacity_bytes,
            block_bytes=disk_aligned(row_bytes),
            key_bytes=KEY_BYTES,
            fingerprint=tier_fingerprint(spec, row_bytes, settings.namespace, entry),
            direct=settings.direct_io,
            holder=holder(spec.config.model.name),
        )
        return open_tier(
            request,
            self._memory.lend,
            memory_slots=self._memory.rows,
            chunk_tokens=self._chunk_tokens,
            write_bytes_per_hour=settings.write_bytes_per_hour,
            timeout_s=settings.timeout_s,
            staged=True,
        )

    @property
    def _chunk_tokens(self) -> int:
        """Tokens of a chunk; where each KV cache group has a chunk of its own, its part of them."""
        config = self._offloading_spec.config
        most_tokens = max(group.tokens_per_block for group in config.groups)
        return int(most_tokens * config.cache.blocks_per_chunk // len(config.groups))

    # ---- what the disk has done ----

    def _can_load(self, key: bytes) -> bool:
        under_way = key in self._jobs.given_up or self._jobs.waits_for(key, loads=True)
        return not self._is_off and not under_way and self._disk.holds(key)

    @property
    def _is_off(self) -> bool:
        return self._broken or self._silent or self._disk.is_down

    def _poll(self) -> None:
        """Take note of what the disk has done, and give up what it does not do."""
        now_s = time.monotonic()
        with self._quietly():
            progress = self._disk.poll()
            if progress is not None:
                self._answered_at_s, self._silent = now_s, False
                self._apply(progress)
        if not self._is_off:
            late = self._jobs.began_before(now_s - _PATIENCE * self._timeout_s)
            for job in late:
                self._jobs.give_up(job)
            if any(self._answered_at_s < job.began_s for job in late):
                self._silent = True
                log.warning("kvtier: the disk tier is off: it does not answer; serving from memory")
        if self._is_off:
            for job in self._jobs.began_before(inf):
                self._jobs.give_up(job)

    def _apply(self, progress: Progress) -> None:
        self._jobs.apply(progress)
        self._metrics.count_hits(len(progress.loaded))
        self._publish(progress.stored, removed=False)
        self._publish(progress.evicted + progress.lost, removed=True)
        for note in progress.notes:
            log.warning("kvtier: %s", note)

    def _publish(self, keys: Sequence[bytes], *, removed: bool) -> None:
        if self._events is not None and keys:
            self._events.append(
                OffloadingEvent(
                    self._keys.of_vllm(keys),
                    Medium.STORAGE,
                    removed,
                    locality=self.locality,
                    removal_expected=True,
                )
            )

    def _result(self, job: secondary.Job) -> JobResult:
        partly = tuple(self._keys.of_vllm(job.done)) if job.loads and job.failed and job.done else None
        return JobResult(
            job.number,
            success=not job.failed,
            successful_keys=partly,
            transfer_time=time.monotonic() - job.began_s,
            transfer_bytes=len(job.done) * self._memory.row_bytes,
        )

    @contextmanager
    def _quietly(self) -> Iterator[None]:
        """Turn the tier off where an exception would end the engine."""
        try:
            yield
        except Exception:  # noqa: BLE001 - whatever it is, the engine goes on without a disk
            if not self._broken:
                log.exception("kvtier: the disk tier is off until the next start; serving from memory")
            self._broken = True
            self._memory.take_all_back()
