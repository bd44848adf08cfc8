"""The disk tier behind the one in memory: what is read for waiting requests, and written behind stores."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

from vllm.v1.kv_offload.base import OffloadKey, ReqContext

from kvtier_connector.core.behind.progress import Progress
from kvtier_connector.core.disk.tier import DiskTier
from kvtier_connector.core.index.index import BlockIndex, BlockState
from kvtier_connector.core.index.keytable import Slots
from kvtier_connector.vllm.behind.promotions import Promotions, ReadDecision
from kvtier_connector.vllm.metrics.disk_tier import DiskMetrics
from kvtier_connector.vllm.upstream.compat import log
from kvtier_connector.vllm.upstream.engine import OffloadingConnectorStats

_PATIENCE_S: Final = 0.05
"""How long a step without work waits for the disk: longer than a chunk takes, too short for a new request to
notice."""

_STEP_WAIT_S: Final = 0.25
"""How long reading may take, as fast as the disk has been, for a step to begin before it has ended."""


@dataclass(frozen=True, slots=True)
class NeverWriteToDisk:
    """In the state of a request's context: its keys do not say all about its bytes, so none are written.

    The context outlives the request, whose stores may end when it has finished.
    """


class ChunkListener(Protocol):
    """Hears what becomes of chunks and of memory: the manager."""

    def on_chunks_stored(self, keys: Sequence[bytes], *, on_disk: bool) -> None:
        """Take note of chunks that can be loaded now."""

    def on_chunks_removed(self, keys: Sequence[bytes], *, on_disk: bool) -> None:
        """Take note of chunks that made room."""

    def on_slots_released(self, slots: Sequence[int]) -> None:
        """Take note of memory that a reset forgot and no transfer uses any more."""


class DiskTiering:
    """Connects the two tiers of one engine."""

    def __init__(  # noqa: PLR0913 - its parts
        self,
        memory: BlockIndex,
        disk: DiskTier,
        listener: ChunkListener,
        chunk_tokens: int,
        *,
        part_ends: tuple[int, ...] = (),
        most_tokens: int,
    ) -> None:
        self._memory = memory
        self._disk = disk
        self._listener = listener
        self._bytes_per_token = disk.block_bytes / chunk_tokens
        self._part_ends = part_ends
        self._decision = ReadDecision(disk, chunk_tokens, most_tokens)
        self.promotions = Promotions(memory, disk, self._decision)
        self._metrics = DiskMetrics(disk, chunk_tokens)
        self.prefill = disk.break_even.prefill

    @property
    def reads_in_parts(self) -> bool:
        """Whether a step can wait for parts of chunks."""
        return bool(self._part_ends)

    def poll(self) -> None:
        """Take note of what the disk has done: before a request's chunks are looked up one by one."""
        progress = self._disk.poll()
        if progress is not None:
            self._apply(progress)

    def lookup(self, key: bytes, context: ReqContext) -> BlockState:
        """Return the state of a chunk in either tier: one on disk is pending until it is in memory."""
        end_tokens = context.get_offload_key_position(OffloadKey(key)) or 0
        return self.promotions.lookup(key, context.req_id, end_tokens)

    @contextmanager
    def ahead(self, request_id: str) -> Iterator[None]:
        """Have lookups of a request find what is being read for it in parts, as if it were in memory."""
        self.promotions.ahead = request_id
        try:
            yield
        finally:
            self.promotions.ahead = ""

    def prepare_load(self, keys: Sequence[bytes], context: ReqContext) -> None:
        """Take note of a load that protects its chunks itself."""
        self._metrics.count_hits(sum(self.promotions.was_promoted(key, context.req_id) for key in keys))
        self.promotions.unpin(context.req_id)
        self._offer_again(keys, context)

    def touch(self, keys: Sequence[bytes], context: ReqContext) -> None:
        """Make chunks the most recently used on disk, too."""
        self._disk.touch(keys)
        self._offer_again(keys, context)

    def complete_store(self, keys: Sequence[bytes], context: ReqContext) -> None:
        """Write chunks that have become loadable, if that pays."""
        if self._saves(context):
            self._write(self._disk.admit(self._disk.lacking(keys)))

    def _offer_again(self, keys: Sequence[bytes], context: ReqContext) -> None:
        """Write chunks in use that the disk was not given before: it was off, or did not keep up."""
        lacking = self._disk.lacking(keys)
        ready = [key for key in lacking if self._memory.state(key) is BlockState.READY]
        if ready and self._saves(context):
            self._write(self._disk.admit(ready, were_offered=True))

    def _saves(self, context: ReqContext) -> bool:
        is_kept_off = context.get_state(NeverWriteToDisk) is not None
        return not is_kept_off and self._decision.can_pay

    def _write(self, keys: Sequence[bytes]) -> None:
        if keys:
            progress = Progress()
            self._disk.store(keys, self._memory.hold(keys), progress)
            self._apply(progress)

    def on_schedule_end(self, *, in_parts: bool = False) -> None:
        """Begin to read what the step's lookups asked for: if a step can wait for them, in parts."""
        self.poll()
        self._decision.learn()
        ends = self._part_ends if in_parts else ()
        begun = self.promotions.begin(ends)
        if begun and ends:
            self._disk.yield_to_disk_thread()
        for reservation in begun:
            self._listener.on_chunks_removed(reservation.evicted, on_disk=False)

    def is_quick(self, tokens: int) -> bool:
        """Tell whether so many tokens are read so soon that a step, and who comes meanwhile, can wait."""
        bandwidth = self._disk.break_even.read.per_second
        return bandwidth is None or tokens * self._bytes_per_token < bandwidth * _STEP_WAIT_S

    def wait(self) -> None:
        """Give way to the disk, in a step that has nothing else to do, until some request can go on."""
        until = time.monotonic() + _PATIENCE_S
        while not self.promotions.is_complete and (left := until - time.monotonic()) > 0:
            self._disk.wait(left)
            self.poll()

    def reset(self) -> Slots:
        """Forget everything on disk and whom transfers are for; returns the memory slots that they use."""
        self._disk.clear()
        self.promotions.forget_memory()
        return self._disk.forget_memory()

    def add_stats(self, stats: OffloadingConnectorStats | None) -> OffloadingConnectorStats | None:
        """Add the disk's numbers."""
        return self._metrics.add_to(stats, pays=self._decision.can_pay)

    def close(self) -> None:
        """Let go of the disk."""
        self._disk.close()

    def _apply(self, progress: Progress) -> None:
        self._listener.on_chunks_stored(self.promotions.apply(progress), on_disk=False)
        self._memory.unpin(progress.released)
        self._listener.on_chunks_removed(progress.evicted, on_disk=True)
        self._listener.on_chunks_stored(progress.stored, on_disk=True)
        if progress.orphans:
            self._listener.on_slots_released(progress.orphans)
        for note in progress.notes:
            log.warning("kvtier: %s", note)
