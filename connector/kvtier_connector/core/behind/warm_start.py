"""Fills memory at an engine's start with the blocks that a tier behind it had in use last.

Nothing leaves memory for them, and nobody waits for a tier that is down. What is still being read when the
time is over arrives while the engine serves.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kvtier_common.tier import Tier
from kvtier_connector.core.behind.tier import Presence, TierBehind
from kvtier_connector.core.index.index import BlockIndex, BlockState

_UNDER_WAY_BYTES: Final = 64 << 20
"""Read at a time: it keeps any disk busy, and the first request has to wait behind no more than that."""
_LEAST_UNDER_WAY: Final = 8  # blocks
_ASKED: Final = 1024  # blocks of which a tier is asked at a time whether it has them
_LOOK_S: Final = 0.05  # how long to wait for a tier, or for memory to grow, before looking again


@dataclass(frozen=True, slots=True)
class Warmed:
    """What came of it."""

    tier: Tier
    blocks: int  # that are in memory now
    size_bytes: int
    seconds: float


class WarmStart:
    """Fills one engine's memory, from one tier after another, until a time by `time.monotonic`."""

    def __init__(
        self,
        memory: BlockIndex,
        *,
        most: int,  # blocks to bring in, all tiers together
        until_s: float,
        poll: Callable[[], None],  # takes note of what the tiers have done, in memory too
        grow: Callable[[], bool],  # takes note of memory that has come, and tells whether more may come
    ) -> None:
        self._memory = memory
        self._left = most
        self._until_s = until_s
        self._poll = poll
        self._grow = grow

    def load(self, tier: TierBehind, pays: Callable[[], bool]) -> Warmed:
        """Read what a tier had in use last, as long as `pays` says that reading is sooner than computing."""
        start_s = time.monotonic()
        waiting = deque(self._newest(tier))
        sent = list[bytes]()
        while self._has_time and pays():
            self._poll()
            is_growing = self._grow()
            batch = self._take(tier, waiting)
            if batch:
                self._left -= len(batch)
                sent += batch
                self._memory.expect_strays()
                tier.load(batch, self._memory.reserve(batch).slots)
            elif tier.loading or tier.asking or (is_growing and waiting and self._left):
                self._wait(tier)
            else:
                break
        # the oldest were reserved last, as if they were the newest
        self._memory.touch(sent)
        there = sum(self._memory.state(key) is BlockState.READY for key in sent)
        return Warmed(tier.tier, there, there * tier.block_bytes, time.monotonic() - start_s)

    @property
    def _has_time(self) -> bool:
        return time.monotonic() < self._until_s

    def _newest(self, tier: TierBehind) -> Sequence[bytes]:
        """Wait until it is known what the tier had in use last."""
        most = self._memory.capacity  # another tier may have brought the same, and some may have gone
        while (newest := tier.newest(most)) is None and self._has_time:
            self._wait(tier)
            self._poll()
        # who writes to a shared store may have written anything
        return [key for key in dict.fromkeys(newest or ()) if len(key) == self._memory.key_bytes]

    def _take(self, tier: TierBehind, waiting: deque[bytes]) -> list[bytes]:
        """Take blocks that can be loaded now off those that wait, and ask for what is not known of them."""
        at_once = max(_LEAST_UNDER_WAY, _UNDER_WAY_BYTES // tier.block_bytes)
        batch = list[bytes]()
        if tier.loading > at_once // 2:
            return batch  # many at a time, which a disk can read in its own order
        room = min(self._left, self._memory.free, at_once - tier.loading)
        while waiting and len(batch) < room:
            key = waiting[0]
            presence = tier.presence(key)
            if presence is Presence.UNKNOWN and not tier.asking:
                ahead = [waiting[place] for place in range(min(_ASKED, len(waiting)))]
                tier.ask([other for other in ahead if tier.presence(other) is Presence.UNKNOWN])
            if presence in {Presence.UNKNOWN, Presence.ASKED}:
                break
            waiting.popleft()
            if presence is Presence.PRESENT and self._memory.state(key) is BlockState.ABSENT:
                batch.append(key)
        return batch

    def _wait(self, tier: TierBehind) -> None:
        tier.wait(max(0.0, min(_LOOK_S, self._until_s - time.monotonic())))
