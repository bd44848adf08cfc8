"""What the owner of a tier's index makes of events: orders under way, progress, counts and rates."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kvtier_connector.core.behind.break_even import BreakEven, Rates
from kvtier_connector.core.behind.messages import Ended, KeepRates, Order, Probe
from kvtier_connector.core.index.keytable import Slots
from kvtier_connector.errors import CorruptBlockError, VanishedBlockError


@dataclass(slots=True)
class Progress:
    """What has happened since the last look. Keys are those of `load` and `store`."""

    loaded: list[bytes] = field(default_factory=list)  # blocks that are in memory now
    # blocks whose load has failed or is taken for failed: they are not on disk any more
    lost: list[bytes] = field(default_factory=list)
    # blocks whose load has failed and ended: their memory may be given to others
    ended: list[bytes] = field(default_factory=list)
    # blocks whose store has ended in whatever way: their memory may change again
    released: list[bytes] = field(default_factory=list)
    stored: list[bytes] = field(default_factory=list)  # blocks of them that are on disk now
    evicted: list[bytes] = field(default_factory=list)  # blocks that gave way on disk
    # memory slots of orders from before `forget_memory`, which have ended
    orphans: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what people should be told, one line each


@dataclass(slots=True)
class Counts:
    """What the tier has done since the last `take_counts`."""

    load_bytes: int = 0  # read from disk
    load_seconds: float = 0.0  # that the disk took for them, added up over those at a time
    store_bytes: int = 0  # written to disk
    store_seconds: float = 0.0  # likewise
    evicted: int = 0  # blocks that gave way
    corrupt: int = 0  # blocks that were not as written
    failed: int = 0  # blocks that could not be read or written
    dropped: int = 0  # blocks that were not written for want of space, or of the right to write more
    absent: int = 0  # blocks that were asked for and not there
    vanished: int = 0  # blocks that were there when asked for, and gone when read

    def add(self, ended: Ended, block_bytes: int) -> None:
        """Count an order that has ended."""
        if ended.error is not None:
            if isinstance(ended.error, CorruptBlockError):
                self.corrupt += 1
            elif isinstance(ended.error, VanishedBlockError):
                self.vanished += 1
            else:
                self.failed += 1
        elif ended.order.write:
            self.store_bytes += block_bytes
            self.store_seconds += ended.seconds
        else:
            self.load_bytes += block_bytes
            self.load_seconds += ended.seconds


class PendingOrders:
    """Loads and stores, each with whether it is lost: taken for failed, while its memory is still in use."""

    def __init__(self) -> None:
        self.loads = dict[Order, bool]()
        self.stores = dict[Order, bool]()
        self._orphans = set[Order]()

    def end(self, ended: Ended, progress: Progress, generation: int, *, is_current: bool) -> None:
        """Take note of an order that has ended."""
        order = ended.order
        if order in self._orphans:
            self._orphans.remove(order)
            if all(other.memory_slot != order.memory_slot for other in self._orphans):
                progress.orphans.append(order.memory_slot)
        elif order.write:
            is_lost = self.stores.pop(order)
            progress.released.append(order.key)
            if ended.error is None and is_current and not is_lost:
                progress.stored.append(order.key)
        else:
            is_lost = self.loads.pop(order)
            if ended.error is None and not is_lost and order.generation == generation:
                progress.loaded.append(order.key)
            else:
                progress.ended.append(order.key)
                if not is_lost:
                    progress.lost.append(order.key)

    def lose(self, orders: Sequence[Order], progress: Progress) -> None:
        """Take orders for failed; they still use their memory."""
        for order in orders:
            if order in self.loads:
                if not self.loads[order]:
                    progress.lost.append(order.key)
                self.loads[order] = True
            elif order in self.stores:
                self.stores[order] = True

    def forget(self) -> Slots:
        """Forget for whom the orders are; returns the memory slots that they still use."""
        self._orphans |= self.loads.keys() | self.stores.keys()
        self.loads.clear()
        self.stores.clear()
        return np.array(sorted({order.memory_slot for order in self._orphans}), np.int32)


class RateLearner:
    """Measures the disk, and keeps for the next engine what is known."""

    def __init__(self, kept: Rates, *, always: bool, block_bytes: int, every_s: float) -> None:
        self.break_even = BreakEven(kept, always=always)
        self._kept = kept
        self._block_bytes = block_bytes
        self._every_s = every_s
        self._look_at_s = 0.0
        self._reading_since_s = 0.0

    def reading_begins(self, now_s: float) -> None:
        """Take note that the disk, of which nothing was asked, is asked to read."""
        self._reading_since_s = now_s

    def believe(self, rates: Rates) -> None:
        """Begin with what another engine has found, and do not keep it as if it were new."""
        self.break_even.believe(rates)
        self._kept = rates

    def measure(self, events: Sequence[object]) -> None:
        """Learn how fast the disk is from what it has read since it was asked, or since the last look."""
        ends = [
            event.at_s
            for event in events
            if isinstance(event, Ended) and event.error is None and not event.order.write
        ]
        if ends and max(ends) > self._reading_since_s:  # an orphan may have ended before the first load began
            self.break_even.read.add(len(ends) * self._block_bytes, max(ends) - self._reading_since_s)
            self._reading_since_s = max(ends)

    def take_due(self, now_s: float, *, is_in_use: bool) -> list[Probe | KeepRates]:
        """Return what the disk is to be told now: to keep what is known, and to show its pace."""
        orders = list[Probe | KeepRates]()
        rates = self.break_even.rates
        is_due = now_s >= self._look_at_s
        if is_due:
            self._look_at_s = now_s + self._every_s
            if not is_in_use:
                orders.append(Probe())
        if rates.says_more_than(self._kept) or (is_due and rates.differs(self._kept)):
            self._kept = rates
            orders.append(KeepRates(rates.text()))
        return orders
