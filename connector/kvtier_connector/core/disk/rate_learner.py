"""What an engine learns of its disk and of itself, from its own reads and steps, and when that is kept."""

from collections.abc import Sequence

from kvtier_connector.core.disk.transfers.messages import Ended, Event, KeepRates, Probe
from kvtier_connector.core.disk.worth.admission import BreakEven
from kvtier_connector.core.disk.worth.rates import Rates


class RateLearner:
    """Measures the disk, and keeps for the next engine what is known.

    Args:
        kept: what an earlier engine found.
        always: say that reading pays, whatever was measured.
        block_bytes: size of a block on disk.
        every_s: how often what was learnt is kept, and a disk that nothing is read from is looked at.

    Attributes:
        break_even: tells whether reading pays.
    """

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

    def measure(self, events: Sequence[Event]) -> None:
        """Learn how fast the disk is from what it has read since it was asked, or since the last look."""
        ends = [
            event.at_s
            for event in events
            if isinstance(event, Ended) and event.error is None and not event.order.write
        ]
        if ends and max(ends) > self._reading_since_s:  # an orphan may have ended before the first load began
            self.break_even.read.measured(len(ends) * self._block_bytes, max(ends) - self._reading_since_s)
            self._reading_since_s = max(ends)

    def take_due(self, now_s: float, *, is_in_use: bool) -> list[Probe | KeepRates]:
        """Return what the disk is to be told now: to keep what is known, and to show its pace.

        Args:
            now_s: a clock's time.
            is_in_use: whether requests read from it.
        """
        orders = list[Probe | KeepRates]()
        found = self.break_even.rates
        is_due = now_s >= self._look_at_s
        if is_due:
            self._look_at_s = now_s + self._every_s
            if not is_in_use:
                orders.append(Probe())
        if found.says_more_than(self._kept) or (is_due and found.differs(self._kept)):
            self._kept = found
            orders.append(KeepRates(found.text()))
        return orders
