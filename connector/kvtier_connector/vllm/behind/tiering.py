"""The tiers behind the one in memory: what is read for waiting requests, and written behind stores."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Final, Protocol

import numpy as np
from vllm.v1.kv_offload.base import OffloadKey, ReqContext

from kvtier_common.tier import Tier
from kvtier_connector.core.behind.progress import Progress
from kvtier_connector.core.behind.tier import TierBehind
from kvtier_connector.core.behind.warm_start import WarmStart
from kvtier_connector.core.index.hints import BlockHint
from kvtier_connector.core.index.index import BlockIndex, BlockState
from kvtier_connector.core.index.keytable import Slots
from kvtier_connector.core.machine.memory import format_bytes
from kvtier_connector.core.remote.transfers import NEWEST_KEYS
from kvtier_connector.vllm.behind.promotions import Promotions, Source
from kvtier_connector.vllm.behind.read_decision import ReadDecision
from kvtier_connector.vllm.hints import RequestHints
from kvtier_connector.vllm.metrics.behind import BehindMetrics
from kvtier_connector.vllm.upstream.compat import log
from kvtier_connector.vllm.upstream.engine import OffloadingConnectorStats

_PATIENCE_S: Final = 0.05
"""How long a step without work waits for a tier: longer than a chunk takes, too short for a new request to
notice."""

_KEEP_NEWEST_S: Final = 300.0
"""How often it is left in a shared store what memory has used last: a search through memory's index."""

_STEP_WAIT_S: Final = 0.25
"""How long reading may take, as fast as the disk has been, for a step to begin before it has ended."""


@dataclass(frozen=True, slots=True)
class NeverWriteBehind:
    """In the state of a request's context: none of its chunks are written.

    Its keys do not say all about its bytes, or it wants its blocks nowhere but on the device. The context
    outlives the request, whose stores may end when it has finished.
    """


def hint_in(context: ReqContext) -> BlockHint | None:
    """Return what a request says of its chunks, as of now."""
    hints = context.get_state(RequestHints)
    return None if hints is None else hints.block_hint(time.monotonic())


class ChunkListener(Protocol):
    """Hears what becomes of chunks and of memory: the manager."""

    def on_chunks_stored(self, keys: Sequence[bytes], tier: Tier) -> None:
        """Take note of chunks that can be loaded now."""

    def on_chunks_removed(self, keys: Sequence[bytes], tier: Tier) -> None:
        """Take note of chunks that made room."""

    def on_slots_released(self, slots: Sequence[int]) -> None:
        """Take note of memory that a reset forgot and no transfer uses any more."""


@dataclass(frozen=True, slots=True)
class _Behind:
    """One tier, with what goes with it."""

    tier: TierBehind
    decision: ReadDecision
    metrics: BehindMetrics


class Tiering:
    """Connects the tiers of one engine."""

    def __init__(  # noqa: PLR0913 - its parts
        self,
        memory: BlockIndex,
        tiers: Sequence[TierBehind],
        listener: ChunkListener,
        chunk_tokens: int,
        *,
        part_ends: tuple[int, ...] = (),
        most_tokens: int,
        hint_of: Callable[[str], BlockHint | None] = lambda _request_id: None,
    ) -> None:
        self._memory = memory
        self._tiers = [
            _Behind(tier, ReadDecision(tier, chunk_tokens, most_tokens), BehindMetrics(tier, chunk_tokens))
            for tier in tiers
        ]
        self._newest_kept_s = inf
        self._listener = listener
        self._chunk_tokens = chunk_tokens
        self._part_ends = part_ends
        sources = [Source(behind.tier, behind.decision) for behind in self._tiers]
        self.promotions = Promotions(memory, sources, hint_of)
        self.prefill = tiers[0].break_even.prefill
        """What tokens cost to compute, which all tiers compare with."""
        self.are_asked = any(tier.is_asked for tier in tiers)
        """Whether a tier has to be asked what it has, which takes a round before reading begins."""

    @property
    def reads_in_parts(self) -> bool:
        """Whether a step can wait for parts of chunks."""
        return bool(self._part_ends)

    @property
    def indexes(self) -> dict[Tier, BlockIndex]:
        """Of the tiers that have one, and can be used at present."""
        found = ((behind.tier.tier, behind.tier.index) for behind in self._tiers)
        return {tier: index for tier, index in found if index is not None}

    def tier(self, tier: Tier) -> TierBehind:
        """Return one of the tiers. Raises KeyError: there is none of that kind."""
        return {behind.tier.tier: behind.tier for behind in self._tiers}[tier]

    def warm_up(self, wait_s: float, grow: Callable[[], bool]) -> None:
        """Read what the tiers had in use last until half of the memory is full or the time is over.

        From then on, keep for other engines what this one uses. `grow` takes note of memory that has come,
        and tells whether more may come.
        """
        self._newest_kept_s = time.monotonic()
        warm_start = WarmStart(
            self._memory,
            most=self._memory.capacity // 2,
            until_s=self._newest_kept_s + wait_s,
            poll=self.poll,
            grow=grow,
        )
        for behind in self._tiers:
            warmed = warm_start.load(behind.tier, partial(_can_pay, behind.decision))
            behind.metrics.count_warmed(warmed.blocks)
            log.info(
                "kvtier: warmed %s chunks (%s) in %.1f s from the %s tier",
                f"{warmed.blocks:,}",
                format_bytes(warmed.size_bytes),
                warmed.seconds,
                warmed.tier.label,
            )

    def _keep_newest(self) -> None:
        """Leave with shared tiers what memory has used last, for an engine that starts."""
        self._newest_kept_s = time.monotonic()
        asked = [behind.tier for behind in self._tiers if behind.tier.is_asked]
        newest = self._memory.newest(NEWEST_KEYS) if asked else []
        for tier in asked:
            tier.keep_newest(newest)

    def poll(self) -> None:
        """Take note of what the tiers have done: before a request's chunks are looked up one by one."""
        for behind in self._tiers:
            progress = behind.tier.poll()
            if progress is not None:
                self._apply(progress, behind.tier)

    def lookup(self, key: bytes, context: ReqContext) -> BlockState:
        """Return the state of a chunk in any tier: one behind memory is pending until it is there."""
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
        sources = [self.promotions.tier_of(key, context.req_id) for key in keys]
        for behind in self._tiers:
            behind.metrics.count_hits(sources.count(behind.tier.tier))
        self.promotions.unpin(context.req_id)
        self._offer_again(keys, context)

    def touch(self, keys: Sequence[bytes], context: ReqContext) -> None:
        """Make chunks the most recently used behind memory, too."""
        hint = hint_in(context)
        for behind in self._tiers:
            behind.tier.touch(keys, hint)
        self._offer_again(keys, context)

    def complete_store(self, keys: Sequence[bytes], context: ReqContext) -> None:
        """Write chunks that have become loadable, where a tier takes them at once and that pays.

        A store that takes what is used again takes at once what is said to be.
        """
        hints = context.get_state(RequestHints)
        is_dear = hints is not None and hints.is_dear
        for behind in self._tiers:
            tier = behind.tier
            if (tier.writes_when_stored or is_dear) and self._saves(behind, context):
                self._write(tier, tier.admit(tier.lacking(keys)), hint_in(context))

    def _offer_again(self, keys: Sequence[bytes], context: ReqContext) -> None:
        """Write chunks in use that a tier was not given before: it was off, late, or waits for a use."""
        for behind in self._tiers:
            tier = behind.tier
            ready = [key for key in tier.lacking(keys) if self._memory.state(key) is BlockState.READY]
            if ready and self._saves(behind, context):
                admitted = tier.admit(ready, were_offered=tier.writes_when_stored)
                self._write(tier, admitted, hint_in(context))

    @staticmethod
    def _saves(behind: _Behind, context: ReqContext) -> bool:
        if context.get_state(NeverWriteBehind) is not None or not behind.decision.can_pay:
            return False
        hints = context.get_state(RequestHints)
        return behind.tier.writes_when_stored or hints is None or not hints.is_cheap

    def _write(self, tier: TierBehind, keys: Sequence[bytes], hint: BlockHint | None) -> None:
        if keys:
            progress = Progress()
            tier.store(keys, self._memory.hold(keys), progress, hint)
            self._apply(progress, tier)

    def on_schedule_end(self, *, in_parts: bool = False) -> None:
        """Begin to read what the step's lookups asked for: if a step can wait for them, in parts."""
        self.poll()
        now_s = time.monotonic()
        for behind in self._tiers:
            behind.decision.learn(now_s)
        if now_s > self._newest_kept_s + _KEEP_NEWEST_S:
            self._keep_newest()
        ends = self._part_ends if in_parts else ()
        begun = self.promotions.begin(ends)
        if begun and ends:
            for behind in self._tiers:
                if behind.tier.loading:
                    behind.tier.yield_to_thread()
        for reservation in begun:
            self._listener.on_chunks_removed(reservation.evicted, Tier.CPU)

    def is_quick(self, tokens: int) -> bool:
        """Tell whether so many tokens are read so soon that a step, and who comes meanwhile, can wait."""
        for tier in (behind.tier for behind in self._tiers if behind.tier.reads_in_parts):
            bandwidth = tier.break_even.read.per_second
            size_bytes = tokens * tier.block_bytes / self._chunk_tokens
            if bandwidth is not None and size_bytes >= bandwidth * _STEP_WAIT_S:
                return False
        return True

    def wait(self) -> None:
        """Give way to the tiers, in a step that has nothing else to do, until some request can go on."""
        until = time.monotonic() + _PATIENCE_S
        while not self.promotions.is_complete and (left := until - time.monotonic()) > 0:
            self._tiers[0].tier.wait(left)
            self.poll()

    def reset(self) -> Slots:
        """Forget everything behind memory and whom transfers are for; returns the memory that they use."""
        for behind in self._tiers:
            behind.tier.clear()
        self.promotions.forget_memory()
        return np.concatenate([behind.tier.forget_memory() for behind in self._tiers])

    # ---- forgetting ----

    @property
    def kinds(self) -> list[Tier]:
        """Which tiers there are."""
        return [behind.tier.tier for behind in self._tiers]

    def forget(self, kind: Tier, keys: Sequence[bytes]) -> None:
        """Have chunks not be found again in a tier, nor by others that share it."""
        progress, tier = Progress(), self.tier(kind)
        tier.forget(keys, progress)
        self._apply(progress, tier)

    def begin_anew(self, kind: Tier, epoch: str) -> None:
        """Have nothing of before be found again in a tier, nor by others that share it."""
        progress, tier = Progress(), self.tier(kind)
        tier.begin_anew(epoch, progress)
        self._apply(progress, tier)

    @property
    def is_forgetting(self) -> bool:
        """Whether something of that is still under way."""
        return any(behind.tier.is_forgetting for behind in self._tiers)

    def take_forget_errors(self) -> list[str]:
        """Return why something could not be forgotten for all, since the last call."""
        errors = {behind.tier.tier: behind.tier.take_forget_error() for behind in self._tiers}
        return [f"{tier.label} tier: {error}" for tier, error in errors.items() if error]

    def add_stats(self, stats: OffloadingConnectorStats | None) -> OffloadingConnectorStats | None:
        """Add the tiers' numbers."""
        for behind in self._tiers:
            stats = behind.metrics.add_to(stats, pays=behind.decision.can_pay)
        return stats

    def close(self) -> None:
        """Let go of the tiers."""
        if self._newest_kept_s < inf:
            self._keep_newest()
        for behind in self._tiers:
            behind.tier.close()

    def _apply(self, progress: Progress, tier: TierBehind) -> None:
        self._listener.on_chunks_stored(self.promotions.apply(progress, tier.tier), Tier.CPU)
        self._memory.unpin(progress.released)
        self._listener.on_chunks_removed(progress.evicted, tier.tier)
        self._listener.on_chunks_stored(progress.stored, tier.tier)
        if progress.orphans:
            self._listener.on_slots_released(progress.orphans)
        for note in progress.notes:
            log.warning("kvtier: %s", note)


def _can_pay(decision: ReadDecision) -> bool:
    return decision.can_pay
