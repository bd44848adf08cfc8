"""What the scheduler asks of a tier behind memory, whichever it is."""

import time
from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from kvtier_common.tier import Tier
from kvtier_connector.core.behind.break_even import BreakEven, WriteBudget
from kvtier_connector.core.behind.progress import Counts, PendingOrders, Progress
from kvtier_connector.core.index.hints import BlockHint
from kvtier_connector.core.index.index import BlockIndex
from kvtier_connector.core.index.keytable import Slots


class Presence(Enum):
    """Whether a tier has a block."""

    PRESENT = "present"
    ABSENT = "absent"
    UNKNOWN = "unknown"  # until it is asked
    ASKED = "asked"  # the answer is on its way


class TierBehind(Protocol):
    """Blocks behind those in memory. No call waits, but for `wait` and `close`."""

    tier: Tier  # which it is
    block_bytes: int
    slots: int  # how many blocks it holds
    break_even: BreakEven
    reads_in_parts: bool  # whether `load` tells workers of parts of blocks
    writes_when_stored: bool  # whether a block is offered when memory has it, or only when it is used again
    is_asked: bool  # whether it has to be asked what it has

    @property
    def index(self) -> BlockIndex | None:
        """What it holds, where that is this engine's and can be used at present."""

    @property
    def used(self) -> int:
        """Number of blocks that are held or being written."""

    @property
    def loading(self) -> int:
        """Number of blocks that are being read."""

    @property
    def asking(self) -> int:
        """Number of blocks of which it has been asked and has not answered."""

    @property
    def is_down(self) -> bool:
        """Whether it cannot be used at present."""

    def presence(self, key: bytes) -> Presence:
        """Tell what is known of a block."""

    def ask(self, keys: Sequence[bytes]) -> None:
        """Find out whether it has blocks of which nothing is known."""

    def load(self, keys: Sequence[bytes], memory_slots: Slots, part_ends: tuple[int, ...] = ()) -> int:
        """Begin to read blocks that are present; `poll` reports each, workers hear of parts by the ticket."""

    def yield_to_thread(self) -> None:
        """Leave the interpreter to the tier's thread until that has begun its orders, or for a moment."""

    def lacking(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return those of the keys that it may lack and is not writing; none while it is down."""

    def admit(self, lacking: Sequence[bytes], *, were_offered: bool = False) -> Sequence[bytes]:
        """Let the first of some blocks be stored, as many as may be now; returns those."""

    def store(
        self, keys: Sequence[bytes], memory_slots: Slots, progress: Progress, hint: BlockHint | None = None
    ) -> None:
        """Begin to write blocks from `admit`; `poll` releases each, when its memory may change again."""

    def touch(self, keys: Sequence[bytes], hint: BlockHint | None = None) -> None:
        """Make blocks the most recently used; those that it lacks are passed over."""

    def newest(self, most: int) -> Sequence[bytes] | None:
        """Return up to `most` blocks that were used last, the last first; None while that is not known yet.

        They may have gone since.
        """

    def keep_newest(self, keys: Sequence[bytes]) -> None:
        """Keep for another engine's start what this one's memory used last, where the tier does not know."""

    def clear(self) -> None:
        """Have nothing of before be found again: the model's weights may have changed."""

    def begin_anew(self, epoch: str, progress: Progress) -> None:
        """Have nothing of before be found again, by nobody who shares it, and go on.

        The epoch is what all who share it are told that everything from now on is of; `progress` is told what
        was under way.
        """

    def forget(self, keys: Sequence[bytes], progress: Progress) -> None:
        """Have blocks not be found again, by nobody who shares it; `progress` is told what was under way."""

    @property
    def is_forgetting(self) -> bool:
        """Whether something of what `begin_anew` and `forget` forgot may still be there after a restart."""

    def take_forget_error(self) -> str:
        """Return why something could not be forgotten for all, since the last call; empty for nothing."""

    def learn(self, now_s: float, *, is_in_use: bool) -> None:
        """Have it looked at where no reads show how fast it is."""

    def forget_memory(self) -> Slots:
        """Forget for whom the orders under way are; returns the memory slots that they still use."""

    def wait(self, timeout_s: float) -> None:
        """Return when `poll` of any tier of the engine has something to say, or after the timeout."""

    def poll(self) -> Progress | None:
        """Take note of what has happened since the last call; returns that, or None."""

    def take_counts(self) -> Counts:
        """Return what was counted since the last call."""

    def close(self) -> None:
        """End what serves the orders."""


class TierOwner:
    """What every tier's owner keeps of its orders: those under way, what may be written, what was done."""

    def __init__(self, *, block_bytes: int, most_writes: int, budget: WriteBudget) -> None:
        self.block_bytes = block_bytes
        self._most_writes = most_writes
        self._budget = budget
        self._pending = PendingOrders()
        self._counts = Counts()

    @property
    def loading(self) -> int:
        """Number of blocks that are being read."""
        return len(self._pending.loads)

    @property
    def is_busy(self) -> bool:
        """Whether it reads or writes for somebody."""
        return bool(self._pending.loads or self._pending.stores)

    def admit(self, lacking: Sequence[bytes], *, were_offered: bool = False) -> Sequence[bytes]:
        """Let the first of some blocks be stored, as many as may be now; returns those.

        Where they were offered before, those that are not admitted have been counted already.
        """
        places = max(0, self._most_writes - len(self._pending.stores))
        granted = self._budget.take(min(len(lacking), places), self.block_bytes, time.monotonic())
        if not were_offered:
            self._counts.dropped += len(lacking) - granted
        return lacking[:granted]

    def take_counts(self) -> Counts:
        """Return what was counted since the last call."""
        counts, self._counts = self._counts, Counts()
        return counts
