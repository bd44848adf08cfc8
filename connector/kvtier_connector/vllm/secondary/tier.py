"""What our tiers behind vLLM's own CPU tier have in common: vLLM's calls, to any of our tiers behind memory.

vLLM reuses the memory of a job as soon as the job is reported, and a request waits until it is. An exception
would end the engine: whatever goes wrong, the tier goes quiet instead.
"""

import time
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from math import inf
from typing import ClassVar, Final

import numpy as np
from typing_extensions import override
from vllm.v1.kv_offload.base import (
    Locality,
    LookupResult,
    Medium,
    OffloadingSpec,
    OffloadKey,
    ReqContext,
    RequestOffloadingContext,
    ScheduleEndContext,
)
from vllm.v1.kv_offload.tiering.backpressure import BackpressureDetector
from vllm.v1.kv_offload.tiering.base import JobResult, SecondaryTierManager, TransferJob

from kvtier_connector.complete import refusals
from kvtier_connector.core.behind.progress import Progress
from kvtier_connector.core.behind.tier import Presence, TierBehind
from kvtier_connector.vllm.metrics.behind import NAMES, BehindMetrics
from kvtier_connector.vllm.secondary.jobs import Job, Jobs, LentMemory, TierKeys
from kvtier_connector.vllm.secondary.settings import entry_path, rename_errors, renamed
from kvtier_connector.vllm.upstream.compat import log
from kvtier_connector.vllm.upstream.engine import OffloadingConnectorStats

_LOOK_S: Final = 0.05


class SecondaryTier(SecondaryTierManager):  # type: ignore[misc] # vLLM has no types
    """Chunks behind vLLM's own memory. Raises SettingError: a setting is unknown, missing or bad."""

    medium: ClassVar[Medium] = Medium.STORAGE
    where: ClassVar[Locality]  # as seen from the engine

    def __init__(
        self,
        offloading_spec: OffloadingSpec,
        primary_kv_view: memoryview,
        tier_type: str,
        backpressure_detector: BackpressureDetector | None = None,
        **settings: object,
    ) -> None:
        super().__init__(offloading_spec, primary_kv_view, tier_type, backpressure_detector)
        self.locality = self.where
        self._memory = LentMemory(primary_kv_view)
        self._keys = TierKeys()
        self._jobs = Jobs(self._memory.take_back)
        self._broken = self._reported_degraded = False
        self._unknown = dict[bytes, None]()
        self._asked = dict[str, set[bytes]]()
        self._entry = entry_path(offloading_spec.extra_config.get("secondary_tiers"), settings)
        with ExitStack() as undo, refusals(), rename_errors(self._entry):
            undo.callback(self._memory.close)
            self._tier = self._open(settings)
            undo.pop_all()
        self._metrics = BehindMetrics(self._tier, self._chunk_tokens)

    # ---- what tiers differ in ----

    @abstractmethod
    def _open(self, settings: dict[str, object]) -> TierBehind:
        """Open the tier behind. Raises ConnectorError: it cannot be had as it is asked for."""

    @abstractmethod
    def _lets_go(self) -> bool:
        """Have nobody touch vLLM's memory any more; tells whether that is so already."""

    # ---- vLLM's calls ----

    @override
    def lookup(self, key: OffloadKey, req_context: ReqContext) -> LookupResult:
        """Tell whether a chunk can be loaded; one that is asked for, or being written, may be soon."""
        with self._quietly():
            fixed = self._keys.in_tier(key)
            if self._is_off or fixed in self._jobs.given_up:
                return LookupResult.MISS
            presence = self._tier.presence(fixed)
            if presence is Presence.PRESENT:
                return LookupResult.HIT
            if presence is Presence.ASKED or self._jobs.waits_for(fixed, loads=False):
                return LookupResult.RETRY
            if presence is Presence.UNKNOWN and self._asks(fixed, req_context.req_id):
                return LookupResult.RETRY
        return LookupResult.MISS

    def _asks(self, key: bytes, request_id: str) -> bool:
        """Have the tier asked when the step ends: once for a request, which might wait for ever else."""
        asked = self._asked.setdefault(request_id, set())
        if key in asked:
            return False
        asked.add(key)
        self._unknown[key] = None
        return True

    @override
    def on_schedule_end(self, context: ScheduleEndContext) -> None:
        """Ask for what the step's lookups could not be told, in one question."""
        unknown, self._unknown = self._unknown, {}
        if unknown:
            with self._quietly():
                self._tier.ask(list(unknown))

    @override
    def on_request_finished(self, req_context: ReqContext) -> None:
        """Forget what was asked for a request."""
        self._asked.pop(req_context.req_id, None)

    @override
    def touch(self, keys: Collection[OffloadKey], req_context: ReqContext) -> None:
        """Make chunks the most recently used."""
        with self._quietly():
            self._tier.touch(list(dict.fromkeys(map(self._keys.in_tier, keys))))

    @override
    def on_new_request(self, req_context: ReqContext) -> RequestOffloadingContext:
        """Have only new chunks offered, not those that a request found cached."""
        return RequestOffloadingContext()

    @override
    def submit_load(self, job_metadata: TransferJob) -> None:
        """Begin to read chunks; those that have gone since they were looked up fail."""
        asked = self._keys.slots(job_metadata)
        job = Job(job_metadata.job_id, time.monotonic(), loads=True, failed=True)
        with self._quietly():
            loadable = {key: slot for key, slot in asked.items() if self._can_load(key)}
            job.waiting, job.failed = loadable, len(loadable) < len(asked)
            if loadable:
                self._tier.load(list(loadable), np.array(list(loadable.values()), np.int32))
        self._jobs.begin(job)

    @override
    def submit_store(self, job_metadata: TransferJob) -> None:
        """Begin to write those chunks that the tier lacks, as far as it keeps up."""
        asked = self._keys.slots(job_metadata)
        job = Job(job_metadata.job_id, time.monotonic(), loads=False, failed=True)
        progress = Progress()
        with self._quietly():
            lacking = self._tier.lacking(list(asked))
            new = [] if self._is_off else [key for key in lacking if key not in self._jobs.given_up]
            wanted = self._tier.admit(new)
            job.waiting = {key: asked[key] for key in wanted}
            job.failed = self._is_off or len(wanted) < len(lacking)
            if wanted:
                self._tier.store(wanted, np.array([asked[key] for key in wanted], np.int32), progress)
        self._jobs.begin(job)
        self._apply(progress)

    @override
    def get_finished_jobs(self) -> Iterable[JobResult]:
        """Return the jobs that ended since the last call."""
        self._poll()
        return [self._result(job) for job in self._jobs.take_ended()]

    @override
    def drain_jobs(self) -> None:
        """Return when no job is under way; a tier that hangs has its jobs fail."""
        self._poll()
        while self._jobs:
            self._tier.wait(_LOOK_S)
            self._poll()

    @override
    def get_stats(self) -> OffloadingConnectorStats | None:
        """Return what changed since the last call, or None."""
        stats = self._metrics.add_to(None)
        degraded = self._is_off
        if degraded or self._reported_degraded:
            self._reported_degraded = degraded
            stats = stats or OffloadingConnectorStats()
            stats.set_gauge(NAMES[self._tier.tier].DEGRADED, int(degraded))
        return stats

    @override
    def shutdown(self) -> None:
        """Let go of the tier, and of the memory, also if the tier hangs."""
        self._tier.close()
        if self._lets_go():
            self._memory.close()

    # ---- what the tier has done ----

    @property
    def _chunk_tokens(self) -> int:
        """Tokens of a chunk; where each KV cache group has a chunk of its own, its part of them."""
        config = self._offloading_spec.config
        most_tokens = max(group.tokens_per_block for group in config.groups)
        return int(most_tokens * config.cache.blocks_per_chunk // len(config.groups))

    @property
    def _is_off(self) -> bool:
        return self._broken or self._tier.is_down

    def _can_load(self, key: bytes) -> bool:
        under_way = key in self._jobs.given_up or self._jobs.waits_for(key, loads=True)
        return not self._is_off and not under_way and self._tier.presence(key) is Presence.PRESENT

    def _poll(self) -> bool:
        """Take note of what the tier has done; tells whether it has said something."""
        progress = None
        with self._quietly():
            progress = self._tier.poll()
            if progress is not None:
                self._apply(progress)
        if self._broken and self._lets_go():
            self._give_up_all()
        return progress is not None

    def _apply(self, progress: Progress) -> None:
        self._jobs.apply(progress)
        self._metrics.count_hits(len(progress.loaded))
        for note in progress.notes:
            log.warning("kvtier: %s", renamed(note, self._entry))

    def _give_up_all(self) -> None:
        for job in self._jobs.began_before(inf):
            self._jobs.give_up(job)

    def _result(self, job: Job) -> JobResult:
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
        except Exception:  # noqa: BLE001 - whatever it is, the engine goes on without the tier
            if not self._broken:
                log.exception("kvtier: %s is off until the next start; serving from memory", self._entry)
            self._broken = True
            self._lets_go()
