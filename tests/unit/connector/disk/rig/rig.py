"""A disk tier on real files whose disk can be made to fail, with as much of an engine as it needs: memory."""

import mmap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tests.unit.connector.disk.rig.blocks import (
    BLOCK,
    capacity_for,
    content_of,
    key_of,
    number_of,
    request_for,
)
from tests.unit.connector.disk.rig.faulty_engine import SOON_S, FaultyEngine

from kvtier_connector.core.behind.break_even import WriteBudget
from kvtier_connector.core.behind.messages import Ended, Order
from kvtier_connector.core.behind.progress import Progress
from kvtier_connector.core.copies.arrivals import ROW_BYTES, Arrivals, Tickets
from kvtier_connector.core.disk.files.store import Store, StoreRequest
from kvtier_connector.core.disk.io.choose import open_engine
from kvtier_connector.core.disk.tier import DiskTier
from kvtier_connector.core.disk.timings import Timings
from kvtier_connector.core.disk.transfers.loop import DiskLoop, DiskThread
from kvtier_connector.core.disk.transfers.messages import Event, Message
from kvtier_connector.core.index.hints import BlockHint
from kvtier_connector.core.index.keytable import Slots

IMPATIENT = Timings(look_s=0.005, check_s=0.005, verdict_s=0.005, worker_patience_s=0.0, first_retry_s=0.0)
"""Nothing waits for time: the folder is looked for and a lost disk tried again all the while. No worker is
waited for either."""


class Coming(NamedTuple):
    """What is being read: slots of the memory, a ticket for each, and the memory."""

    slots: Slots
    tickets: Tickets
    views: list[memoryview]


class WatchedDisk:
    """A DiskThread of which every order and every end is counted."""

    def __init__(self, disk: DiskThread) -> None:
        self.within = disk
        self.sent = Counter[Order]()
        self.ended = Counter[Order]()

    def send(self, messages: Sequence[Message]) -> None:
        self.sent.update(message for message in messages if isinstance(message, Order))
        self.within.send(messages)

    def take_events(self) -> list[Event]:
        found = self.within.take_events()
        self.ended.update(event.order for event in found if isinstance(event, Ended))
        return found

    def wait(self, timeout_s: float) -> bool:
        return self.within.wait(timeout_s)

    def has_begun(self) -> bool:
        return self.within.has_begun()

    def has_taken_all(self) -> bool:
        return self.within.has_taken_all()

    def is_stuck(self) -> bool:
        return self.within.is_stuck()

    def close(self, timeout_s: float) -> None:
        self.within.close(timeout_s)


class Rig:
    """A tier of `slots` blocks, over memory of `memory_slots`. `seen` is all that its progress ever said.

    A transfer is of one block, unless `joined_blocks` are more.
    """

    def __init__(
        self,
        request: StoreRequest,
        *,
        memory_slots: int = 64,
        depth: int = 8,
        joined_blocks: int = 1,
        timings: Timings = IMPATIENT,
    ) -> None:
        self.request = request
        self.store = Store.open(request)
        self.engine = FaultyEngine(open_engine(depth)[0], joined_bytes=joined_blocks * BLOCK)
        self.arrivals = Arrivals(mmap.mmap(-1, memory_slots * ROW_BYTES))
        loop = DiskLoop(self.store, self._reopened, self.engine, SOON_S, self.arrivals, timings=timings)
        self.disk = WatchedDisk(DiskThread(loop))
        self._memory = mmap.mmap(-1, memory_slots * BLOCK)
        self.free = list(range(memory_slots))
        self.slot_of = dict[bytes, int]()
        self.seen = Progress()
        self.arrived = dict[int, bytes]()
        """What was loaded, as it was when its load was reported."""
        self.reopening = list[Exception]()
        """What the next attempts to open the store again meet."""
        self.attempts = 0
        self.tier = DiskTier(
            self.disk,  # type: ignore[arg-type] # has what is asked of it
            self.store,
            block_bytes=BLOCK,
            memory_of=self._parts,
            most_writes=memory_slots,
            budget=WriteBudget(0, 0.0),
        )

    # ---- orders ----

    def begin_store(
        self, numbers: Iterable[int], epoch: int = 0, hint: BlockHint | None = None
    ) -> list[bytes]:
        lacking = self.tier.lacking([key_of(number) for number in numbers])
        wanted = list(self.tier.admit(lacking))
        for key in wanted:
            self._view(self._give(key))[:] = content_of(number_of(key), epoch)
        now = Progress()
        self.tier.store(wanted, self._slots(wanted), now, hint)
        self.take(now)
        return wanted

    def begin_load(self, numbers: Iterable[int]) -> list[bytes]:
        keys = [key_of(number) for number in numbers]
        self.begin_parts(keys, ())
        return keys

    def begin_parts(self, keys: Sequence[bytes], ends: tuple[int, ...]) -> Coming:
        """Load blocks in parts that end there."""
        for key in keys:
            self._view(self._give(key))[:] = bytes(BLOCK)
        slots = self._slots(keys)
        ticket = self.tier.load(keys, slots, ends)
        return Coming(slots, np.full(len(slots), ticket), [self._view(slot) for slot in slots.tolist()])

    def stored(self, numbers: Iterable[int], epoch: int = 0, hint: BlockHint | None = None) -> list[int]:
        """Store blocks; returns those that are on disk when all has ended."""
        keys = self.begin_store(numbers, epoch, hint)
        self.quiet()
        return [number_of(key) for key in keys if self.tier.holds(key)]

    def loaded(self, numbers: Iterable[int]) -> dict[int, bytes]:
        """Load blocks that the tier holds; returns the bytes of those that came."""
        self.arrived.clear()
        self.begin_load(numbers)
        self.quiet()
        return dict(self.arrived)

    # ---- what has happened ----

    def take(self, now: Progress) -> None:
        for part in fields(Progress):
            getattr(self.seen, part.name).extend(getattr(now, part.name))
        for key in now.loaded:
            self.arrived[number_of(key)] = bytes(self._view(self.slot_of[key]))
        for key in now.loaded + now.ended + now.released:
            self.free.append(self.slot_of.pop(key))
        self.free += now.orphans

    def step(self) -> None:
        assert self.disk.wait(SOON_S), "nothing happened"
        now = self.tier.poll()
        if now is not None:
            self.take(now)

    def quiet(self) -> None:
        """Take progress until every order has ended."""
        while self.disk.sent.total() > self.disk.ended.total():
            self.step()

    def until_down(self) -> None:
        """Take progress until the tier has been down; on a busy machine it may be up again by then."""
        before = self._times_down
        while not self.tier.is_down and self._times_down == before:
            self.step()

    @property
    def _times_down(self) -> int:
        return sum("the disk tier is off" in note for note in self.seen.notes)

    def until_up(self) -> None:
        while self.tier.is_down:
            self.step()

    def forget_memory(self) -> list[int]:
        in_use: list[int] = self.tier.forget_memory().tolist()
        self.slot_of.clear()
        return in_use

    def close(self) -> None:
        self.engine.release()
        self.tier.close()

    # ---- within ----

    def _reopened(self) -> Store:
        self.attempts += 1
        if self.reopening:
            raise self.reopening.pop(0)
        return Store.open(self.request)

    def _give(self, key: bytes) -> int:
        assert key not in self.slot_of
        self.slot_of[key] = self.free.pop(0)
        return self.slot_of[key]

    def _slots(self, keys: Sequence[bytes]) -> Slots:
        return np.array([self.slot_of[key] for key in keys], np.int32)

    def _view(self, slot: int) -> memoryview:
        return memoryview(self._memory)[slot * BLOCK : (slot + 1) * BLOCK]

    def _parts(self, slot: int) -> tuple[memoryview, ...]:
        return (self._view(slot),)


@contextmanager
def rig_in(  # noqa: PLR0913 - what a rig is made of
    path: Path,
    slots: int = 16,
    *,
    memory_slots: int = 64,
    direct: bool = False,
    joined_blocks: int = 1,
    timings: Timings = IMPATIENT,
) -> Iterator[Rig]:
    """A rig, at whose end every order must have ended once and nothing be pinned."""
    rig = Rig(
        request_for(path, capacity_for(slots), direct=direct),
        memory_slots=memory_slots,
        joined_blocks=joined_blocks,
        timings=timings,
    )
    try:
        yield rig
        rig.engine.release()
        rig.quiet()
        assert rig.disk.sent == rig.disk.ended
        assert rig.engine.clashes == []
        assert sorted(rig.free) == list(range(memory_slots)), "memory was not given back, or twice"
        if not rig.tier.is_down:
            assert rig.tier._store
            assert rig.tier._store.index.reservable == rig.tier.slots, "something is still pinned"
    finally:
        rig.close()


def found_by_the_next(path: Path, slots: int = 16) -> dict[int, bytes]:
    """Return every block that the next engine can load from the folder."""
    with rig_in(path, slots) as rig:
        _, keys = rig.store.index.rows(0, rig.store.shape.slots)
        return rig.loaded(number_of(key.tobytes()) for key in keys)
