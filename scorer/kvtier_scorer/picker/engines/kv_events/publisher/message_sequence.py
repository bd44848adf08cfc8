"""The numbers of a publisher's messages: what was missed, what came twice, and when it began anew."""

from dataclasses import dataclass
from enum import Enum, auto


class Continuity(Enum):
    """How the number of a message relates to the ones before it."""

    NEXT = auto()
    DUPLICATE = auto()
    AFTER_GAP = auto()
    NEW_PUBLISHER = auto()


@dataclass(slots=True)
class MessageSequence:
    """Counts one publisher's messages; the first has number 0 (vllm/distributed/kv_events.py).

    Attributes:
        expected: The number that comes next.
    """

    expected: int = 0
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
