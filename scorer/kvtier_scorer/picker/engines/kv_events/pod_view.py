"""One pod's messages, applied to the index: bytes in, calls out.

A pod is precise while everything that it holds is known, and approximate otherwise. Everything is known from
a publisher's first message on, after a complete replay, after a reset of the caches, and once each tier that
is announced has taken in as many blocks as it holds: what is older has been evicted by then.
"""

import logging
import time
from collections import Counter
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from itertools import chain
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from kvtier_common.tier import Tier
from kvtier_scorer.picker.engines.kv_events.chains import PodChains, Run, UnalignedBlocksError
from kvtier_scorer.picker.engines.kv_events.limits import HeldBlocks
from kvtier_scorer.picker.engines.kv_events.payload import (
    PART_BLOCKS,
    AllBlocksCleared,
    BlockRemoved,
    BlockStored,
    Event,
    MalformedEventsError,
    cost,
    decode,
    parts,
    tier_of,
)
from kvtier_scorer.picker.observability.logs import LogRateLimiter

_LOG: Final = logging.getLogger(__name__)
_TIMES_OVER: Final = 2
_LINES: Final = 20  # about one pod; what it sends could differ each time
_LOG_INTERVAL_S: Final = 60.0
"""Between two lines that say that it became approximate, or precise: it decides how often it does."""
_AT_LEAST: Final = 1 << 16
"""Blocks of a tier that are taken in whatever its capacity is said to be: a plan may be far off at first."""


class Continuity(Enum):
    """How the number of a message relates to the ones before it."""

    NEXT = auto()
    DUPLICATE = auto()
    AFTER_GAP = auto()
    NEW_PUBLISHER = auto()


@dataclass(slots=True)
class MessageSequence:
    """Counts one publisher's messages; the first has number 0 (vllm/distributed/kv_events.py)."""

    expected: int = 0  # the number that comes next
    _last_live: int = -1

    def continuity(self, number: int) -> Continuity:
        """How a message from the publisher's own stream follows on those before it."""
        if number <= self._last_live:
            return Continuity.NEW_PUBLISHER
        if number < self.expected:
            return Continuity.DUPLICATE  # a replay brought it already
        return Continuity.NEXT if number == self.expected else Continuity.AFTER_GAP

    def advance_live(self, number: int) -> None:
        """A message of the stream was taken."""
        self._last_live = number
        self.expected = max(self.expected, number + 1)

    def advance_replayed(self, number: int) -> None:
        """A message of a replay was taken."""
        self.expected = number + 1

    def restart(self) -> None:
        """A publisher begins."""
        self.expected, self._last_live = 0, -1


class TierIndex(Protocol):
    """What of the prefix index precise mode uses; a pod is known by its number."""

    def set_precise(self, pod: int, *, precise: bool) -> None:
        """The pod says what it holds, or no longer does; either way what was believed of it is forgotten."""

    def store(self, pod: int, tier: Tier, hashes: NDArray[np.uint64], parent: int | None) -> None:
        """Blocks, each following the one before."""

    def remove(self, pod: int, tier: Tier, hashes: NDArray[np.uint64]) -> None:
        """Blocks that are no longer there."""

    def capacity(self, pod: int, tier: Tier) -> int:
        """Blocks that a tier holds."""


class TooManyBlocksError(Exception):
    """A pod announces what it cannot hold: removals were lost, or the publisher is something else."""


class PodView:
    """What one pod's events told so far; the index, which has a number for the pod, learns what it holds."""

    def __init__(
        self, pod: int, name: str, index: TierIndex, chains: PodChains, held_blocks: HeldBlocks | None = None
    ) -> None:
        self.precise = False  # whether the index believes the events alone
        self._pod = pod
        self._name = name
        self._index = index
        self._chains = chains
        self._held_blocks = held_blocks
        self._sequence = MessageSequence()
        self._whole = True
        self._given_up = False
        self._taken_in: Counter[Tier] = Counter()
        self._logged: set[str] = set()
        self._rate_limited_log = LogRateLimiter(_LOG, _LOG_INTERVAL_S, time.monotonic)

    @property
    def given_up(self) -> bool:
        """Whether its events are of no use, until `restart`."""
        return self._given_up

    @property
    def expected(self) -> int:
        """Number of the message that comes next: where a replay has to begin."""
        return self._sequence.expected

    def notice_restart(self, number: int) -> None:
        """Begins anew if a message has a number that shows that its publisher did."""
        if self._sequence.continuity(number) is Continuity.NEW_PUBLISHER:
            self.restart("its events begin anew")

    def misses(self, number: int) -> bool:
        """Whether messages before this one are missing, so that a replay helps."""
        return self._sequence.continuity(number) is Continuity.AFTER_GAP

    def apply_live(self, number: int, payload: bytes) -> Generator[int]:
        """Takes a message of the publisher's stream, in steps of some milliseconds; yields their blocks."""
        self.notice_restart(number)
        if self.misses(number):
            self._forget(f"KV events {self._sequence.expected} to {number - 1} were missed")
        is_new = self._sequence.continuity(number) is not Continuity.DUPLICATE
        self._sequence.advance_live(number)
        if is_new:
            yield from self._take_whole(payload)

    def apply_replayed(self, number: int, payload: bytes) -> Generator[int]:
        """Takes a message of a replay, in steps as `apply_live` does; a known one is passed over."""
        if number < self._sequence.expected:
            return
        if number > self._sequence.expected:
            self._forget(f"its replay begins at {number}, not at {self._sequence.expected}")
        self._sequence.advance_replayed(number)
        yield from self._take_whole(payload)

    def evict(self) -> None:
        """All pods together announce more than there is memory for, and this one the most."""
        self._give_up("the pods' KV events tell of more blocks than the picker has memory for")

    def end(self) -> None:
        """The pod is gone; the index is not told."""
        self.precise = False
        self._release()

    def restart(self, reason: str) -> None:
        """The publisher is gone or another one; what it told before counts no more."""
        self._forget(reason)
        self._sequence.restart()
        self._whole, self._given_up = True, False

    def _forget(self, reason: str) -> None:
        if self.precise:
            what = "pod %s: %s; approximate until all that it holds is known"
            self._rate_limited_log.log(logging.WARNING, "approximate", what, self._name, reason)
            self._index.set_precise(self._pod, precise=False)
        self.precise = self._whole = False
        self._release()
        self._taken_in.clear()

    def _release(self) -> None:
        self._chains.clear()
        if self._held_blocks is not None:
            self._held_blocks.release(self)

    def _give_up(self, why: str) -> None:
        self._once(f"{why}; it stays approximate")
        self._forget("its events are of no use")
        self._given_up = True

    def _take_whole(self, payload: bytes) -> Generator[int]:
        try:
            yield from self._take(payload)
        except GeneratorExit:
            self._forget("a message of its KV events was not taken whole")
            raise

    def _take(self, payload: bytes) -> Generator[int]:
        if self._given_up:
            return
        try:
            yield from self._apply_all(payload)
        except MalformedEventsError as error:
            self._once(str(error))
            self._forget("an event of it could not be read")
            return
        except (UnalignedBlocksError, TooManyBlocksError) as error:
            self._give_up(str(error))
            return
        if self._given_up:
            return  # others' blocks took the memory meanwhile
        if self._held_blocks is not None:
            self._held_blocks.hold(self, self._chains.blocks)
        if not self._given_up and not self.precise and self._is_known():
            yield from self._become_precise()

    def _apply_all(self, payload: bytes) -> Generator[int]:
        done = 0
        for part in chain.from_iterable(map(parts, decode(payload))):
            done += cost(part)
            if part is None:
                self._once("it sends KV events of a kind that is not known")
            else:
                self._apply(part)
            if done >= PART_BLOCKS:
                yield done
                done = 0
                if self._given_up:
                    return
        yield done

    def _apply(self, event: Event) -> None:
        if isinstance(event, AllBlocksCleared):
            self._clear()
            return
        if (tier := tier_of(event.medium)) is None:
            self._once(f"it sends KV events of a medium that is not known: {event.medium!r:.40}")
        elif isinstance(event, BlockStored):
            self._store(event, tier)
        else:
            self._remove(event, tier)

    def _store(self, event: BlockStored, tier: Tier) -> None:
        runs = self._chains.store(event, tier)
        if not event.token_ids and not runs:
            self._once(
                f"its KV events of the {tier.label} tier do not say what is stored; "
                "set self_describing_kv_events in its connector's extra config"
            )
        self._taken_in[tier] += sum(len(run.hashes) for run in runs)
        most = max(_AT_LEAST, _TIMES_OVER * self._index.capacity(self._pod, tier))
        if self._chains.held_entries(tier) > most:
            raise TooManyBlocksError(
                f"more than {most} blocks in the {tier.label} tier, which holds far fewer"
            )
        if self.precise:
            self._learn(runs)

    def _remove(self, event: BlockRemoved, tier: Tier) -> None:
        for run in self._chains.remove(event, tier):
            if self.precise:
                self._index.remove(self._pod, run.tier, run.hashes)

    def _clear(self) -> None:
        self._release()
        self._whole = True
        if self.precise:
            self._index.set_precise(self._pod, precise=True)

    def _is_known(self) -> bool:
        return self._whole or (
            bool(self._taken_in)
            and all(count >= self._index.capacity(self._pod, tier) for tier, count in self._taken_in.items())
        )

    def _become_precise(self) -> Generator[int]:
        what = "pod %s: its KV events tell what it holds"
        self._rate_limited_log.log(logging.INFO, "precise", what, self._name)
        self.precise = True
        self._index.set_precise(self._pod, precise=True)
        done = 0
        for run in self._chains.everything():
            self._learn([run])
            done += len(run.hashes)
            if done >= PART_BLOCKS:
                yield done
                done = 0
                if not self.precise:
                    return  # its blocks had to go meanwhile
        yield done

    def _learn(self, runs: Iterable[Run]) -> None:
        for run in runs:
            self._index.store(self._pod, run.tier, run.hashes, run.parent)

    def _once(self, what: str) -> None:
        """One line for each thing that a pod does, however often it does it."""
        if what not in self._logged and len(self._logged) < _LINES:
            self._logged.add(what)
            _LOG.warning("pod %s: %s", self._name, what)
