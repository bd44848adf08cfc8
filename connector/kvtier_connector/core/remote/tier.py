"""The remote tier as the scheduler sees it: what is known of it, and orders that never wait."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kvtier_common.tier import Tier
from kvtier_connector.core.behind.break_even import PrefillModel, Rates, WriteBudget
from kvtier_connector.core.behind.messages import Down, Ended, MemoryOf, Order, Probe, Probed
from kvtier_connector.core.behind.progress import Progress, RateLearner
from kvtier_connector.core.behind.tier import Presence, TierOwner
from kvtier_connector.core.index.hints import BlockHint
from kvtier_connector.core.index.keytable import Slots
from kvtier_connector.core.remote.facts import facts_judged
from kvtier_connector.core.remote.findings import Level
from kvtier_connector.core.remote.store import ServerFacts
from kvtier_connector.core.remote.transfers import (
    DEFAULT_TIMINGS,
    Answered,
    EpochKept,
    Event,
    Facts,
    Forgotten,
    Full,
    RemoteThreads,
    RemoteTimings,
    Up,
)
from kvtier_connector.errors import CorruptBlockError, VanishedBlockError

_HOUR_S: Final = 3600
_PRESENT_S: Final = 30.0  # how long a block is taken to be there still
_ABSENT_S: Final = 2.0  # how long to be absent still: another engine may write it
_TOUCH_S: Final = 10.0  # how often it is told of a use at most
_MOST_ANSWERS: Final = 1 << 17  # 20 MiB of them


class RemoteTier(TierOwner):
    """Blocks in a store that other engines read and write as well."""

    tier = Tier.REMOTE
    reads_in_parts = False
    writes_when_stored = False
    is_asked = True
    index = None

    def __init__(  # noqa: PLR0913 - its parts
        self,
        threads: RemoteThreads,
        *,
        capacity_bytes: int,
        block_bytes: int,
        memory_of: MemoryOf,
        most_writes: int,
        write_bytes_per_s: int,
        prefill: PrefillModel | None = None,
        always: bool = False,
        timings: RemoteTimings = DEFAULT_TIMINGS,
    ) -> None:
        super().__init__(
            block_bytes=block_bytes,
            most_writes=most_writes,
            budget=WriteBudget(write_bytes_per_s * _HOUR_S, time.monotonic()),
        )
        self._threads = threads
        self.slots = capacity_bytes // block_bytes
        self._capacity_bytes = capacity_bytes
        self._memory_of = memory_of
        self._learning = RateLearner(
            Rates(), always=always, block_bytes=block_bytes, every_s=timings.relearn_s
        )
        self.break_even = self._learning.break_even
        if prefill is not None:
            self.break_even.prefill = prefill
        self._answers = dict[bytes, tuple[bool, float]]()
        self._asked = set[bytes]()
        self._writing = set[bytes]()
        self._forgetting = set[bytes]()  # blocks of which the store has not said yet that they are gone
        self._epoch_to_keep = ""  # what the store has not said yet that it knows
        self._forget_error = ""
        self._generation = 0
        self._newest: Sequence[bytes] | None = None
        self._facts: ServerFacts | None = None
        self._is_down = True
        self._is_off = False

    @property
    def used(self) -> int:
        """Number of blocks that the store holds, of all engines, by what it says of its memory."""
        return self._facts.used_bytes // self.block_bytes if self._facts is not None else 0

    @property
    def asking(self) -> int:
        """Number of blocks of which it has been asked and has not answered."""
        return len(self._asked)

    @property
    def is_down(self) -> bool:
        """Whether the store cannot be used at present."""
        return self._is_down or self._is_off

    def presence(self, key: bytes) -> Presence:
        """Tell what is known of a block."""
        if self.is_down or key in self._forgetting:
            return Presence.ABSENT
        if key in self._asked:
            return Presence.ASKED
        is_there, at_s = self._answers.get(key, (False, -_HOUR_S))
        if time.monotonic() - at_s > (_PRESENT_S if is_there else _ABSENT_S):
            return Presence.UNKNOWN
        return Presence.PRESENT if is_there else Presence.ABSENT

    def ask(self, keys: Sequence[bytes]) -> None:
        """Find out whether it has blocks, in one question."""
        new = [key for key in keys if key not in self._asked]
        if new and not self.is_down:
            self._asked.update(new)
            self._threads.ask(new)

    def load(self, keys: Sequence[bytes], memory_slots: Slots, part_ends: tuple[int, ...] = ()) -> int:
        """Begin to read blocks; `poll` reports each."""
        del part_ends
        if not self._pending.loads:
            self._learning.reading_begins(time.monotonic())
        self._send(keys, memory_slots, write=False)
        return 0

    def yield_to_thread(self) -> None:
        """Do nothing: no step waits for parts."""

    def lacking(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return those of the keys that it is not known to have, and that are not being written."""
        if self.is_down or not self._threads.takes_writes:
            return []
        under_way = self._writing | self._forgetting if self._forgetting else self._writing
        return [key for key in keys if key not in under_way and not self._was_there(key)]

    def _was_there(self, key: bytes) -> bool:
        answer = self._answers.get(key)
        return answer is not None and answer[0]

    def store(
        self, keys: Sequence[bytes], memory_slots: Slots, progress: Progress, hint: BlockHint | None = None
    ) -> None:
        """Begin to write blocks that it lacks; `poll` releases each. The store makes room as it does."""
        del progress, hint
        self._writing.update(keys)
        self._send(keys, memory_slots, write=True)

    def touch(self, keys: Sequence[bytes], hint: BlockHint | None = None) -> None:
        """Tell the store of uses, of a prompt's root last: what was used longest ago is evicted first."""
        del hint
        if self.is_down:
            return
        before_s = time.monotonic() - _TOUCH_S
        old = [key for key in keys if self._was_there(key) and self._answers[key][1] < before_s]
        if old:
            now_s = time.monotonic()
            self._answers.update((key, (True, now_s)) for key in old)
            self._threads.ask(old[::-1])

    def newest(self, most: int) -> Sequence[bytes] | None:
        """Return up to `most` blocks that another engine used last; None until the store was tried."""
        return None if self._newest is None else self._newest[:most]

    def keep_newest(self, keys: Sequence[bytes]) -> None:
        """Keep in the store what this engine's memory used last; the last engine to do so is believed."""
        if keys and not self.is_down:
            self._threads.keep_newest(keys)

    def clear(self) -> None:
        """Neither read nor write until the next start: others would find what other weights have computed."""
        self._is_off = True
        self._generation += 1
        self._answers.clear()
        self._asked.clear()

    def begin_anew(self, epoch: str, progress: Progress) -> None:
        """Neither find nor write what is not of this epoch, which others learn of from the store."""
        self._generation += 1
        self._answers.clear()
        self._asked.clear()
        self._pending.lose([*self._pending.loads, *self._pending.stores], progress)
        self._epoch_to_keep = epoch
        self._threads.begin_epoch(epoch, self._generation)

    def forget(self, keys: Sequence[bytes], progress: Progress) -> None:
        """Remove blocks from the store; those that are being written once they have been."""
        of_them = set(keys)
        self._pending.lose([order for order in self._pending.loads if order.key in of_them], progress)
        self._pending.lose([order for order in self._pending.stores if order.key in of_them], progress)
        for key in keys:
            self._answers.pop(key, None)
        self._forgetting |= of_them
        if now := [key for key in keys if key not in self._writing]:
            self._threads.forget(now)

    @property
    def is_forgetting(self) -> bool:
        """Whether the store has not said of all that was forgotten that it is gone, nor that it cannot."""
        return bool(self._forgetting or self._epoch_to_keep)

    def take_forget_error(self) -> str:
        """Return why the store could not be told to forget something, since the last call."""
        error, self._forget_error = self._forget_error, ""
        return error

    def learn(self, now_s: float, *, is_in_use: bool) -> None:
        """Have the store looked at where no reads show how fast it is."""
        if self.is_down:
            return
        for order in self._learning.take_due(now_s, is_in_use=is_in_use):
            if isinstance(order, Probe):
                self._threads.probe()
            else:
                self._threads.keep_rates(order)

    def forget_memory(self) -> Slots:
        """Forget for whom the orders under way are; returns the memory slots that they still use."""
        self._writing.clear()
        return self._pending.forget()

    def wait(self, timeout_s: float) -> None:
        """Return when `poll` has something to say, or after the timeout."""
        self._threads.outbox.wait(timeout_s)

    def poll(self) -> Progress | None:
        """Take note of what has happened since the last call; returns that, or None."""
        events = self._threads.outbox.take()
        if not events:
            return None
        self._learning.measure(events)
        progress = Progress()
        for event in events:
            match event:
                case Ended():
                    self._end(event, progress)
                case Answered(keys, present, generation):
                    if generation == self._generation:
                        self._note(keys, present)
                case Probed(size_bytes, seconds):
                    self.break_even.read.add(size_bytes, seconds)
                case Facts(facts):
                    self._facts = facts
                case _:
                    self._hear(event, progress)
        return progress

    def _hear(self, event: Event, progress: Progress) -> None:
        """Take note of what happens seldom."""
        match event:
            case Up(facts, rates, newest):
                self._newest = newest
                # how fast the store is from where another engine runs says nothing of here
                self._learning.believe(replace(Rates.parse(rates), read_bytes_per_s=None))
                self._come_up(facts, progress)
            case Down(reason):
                self._go_down(reason, progress)
            case Full(reason):
                progress.notes.append(f"the remote tier takes no more for a while: {reason}")
            case Forgotten(keys, error):
                self._forgetting.difference_update(keys)
                self._forget_error = self._forget_error or error
            case EpochKept(epoch, error) if epoch == self._epoch_to_keep:
                self._epoch_to_keep = ""
                self._forget_error = self._forget_error or error
            case _:
                pass

    def stop(self) -> bool:
        """Have what serves the orders end; tells whether it has: from then on nobody touches memory."""
        return self._threads.stop()

    def close(self) -> None:
        """End what serves the orders."""
        self._threads.close()

    def _send(self, keys: Sequence[bytes], memory_slots: Slots, *, write: bool) -> None:
        orders = [
            Order(write, self._generation, key, -1, slot, self._memory_of(slot))
            for key, slot in zip(keys, memory_slots.tolist(), strict=True)
        ]
        (self._pending.stores if write else self._pending.loads).update(dict.fromkeys(orders, False))
        self._threads.order(orders)

    def _end(self, ended: Ended, progress: Progress) -> None:
        order = ended.order
        is_current = order.generation == self._generation
        if not order.write or ended.error is not None or ended.seconds:  # else it was there already
            self._counts.add(ended, self.block_bytes)
        self._pending.end(ended, progress, self._generation, is_current=is_current)
        self._writing.discard(order.key)
        if order.key in self._forgetting:
            if order.write:
                self._threads.forget([order.key])  # whatever of it has been written
            return
        # a read that fails for another reason says nothing of the block
        is_gone = not order.write and isinstance(ended.error, VanishedBlockError | CorruptBlockError)
        if is_current and (is_gone or ended.error is None):
            self._answers[order.key] = not is_gone, ended.at_s

    def _note(self, keys: Sequence[bytes], present: Sequence[bool]) -> None:
        now_s = time.monotonic()
        new = [key for key in keys if key in self._asked]
        self._asked.difference_update(keys)
        if self._is_off:
            return
        if len(self._answers) > _MOST_ANSWERS:
            self._answers.clear()
        known = dict(zip(keys, present, strict=True))
        self._answers.update(
            (key, (is_there, now_s)) for key, is_there in known.items() if key not in self._forgetting
        )
        self._counts.absent += sum(not known[key] for key in new)

    def _come_up(self, facts: ServerFacts, progress: Progress) -> None:
        self._facts, self._is_down = facts, False
        progress.notes.append(f"the remote tier is in use: {facts.version}")
        progress.notes += [
            f"the remote tier's store: {finding.setting}: {finding.line}"
            for finding in facts_judged(facts, self._capacity_bytes)
            if finding.level in {Level.WARN, Level.BAD}
        ]

    def _go_down(self, reason: str, progress: Progress) -> None:
        self._is_down = True
        self._newest = self._newest or ()
        self._answers.clear()
        self._asked.clear()
        progress.notes.append(f"the remote tier is off: {reason}; serving without it, and trying again")
