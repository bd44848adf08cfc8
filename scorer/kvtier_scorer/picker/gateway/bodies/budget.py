"""Memory for the bodies of all requests under way: one budget, and a share of it for each request."""

from collections.abc import Callable
from typing import Final

from kvtier_scorer.errors import NoRoomError, TooLargeError

_RETRY: Final = "the picker holds as many bodies as it may; send it again later"


def _nobody_told() -> None:
    """A share whose loss nobody needs to hear of: what took it has ended."""


class BodyShare:
    """What one request holds of the budget.

    Attributes:
        held_bytes: So much.
        since_s: When it began to hold something.
        lost: Called when the share goes to others; it holds nothing any more then.
        pinned: It cannot be lost now: its body is being read.
    """

    __slots__ = ("_budget", "held_bytes", "lost", "pinned", "since_s")

    def __init__(self, budget: "BodyBudget") -> None:
        self._budget = budget
        self.held_bytes = 0
        self.since_s = 0.0
        self.lost: Callable[[], None] = _nobody_told
        self.pinned = False

    def announced(self, size_bytes: int) -> None:
        """The client says how long its body will be; nothing is held for it yet.

        Raises:
            TooLargeError: It is too long.
            NoRoomError: So much cannot be had now.
        """
        self._budget.check(self, size_bytes)

    def take(self, size_bytes: int) -> None:
        """Hold so much more.

        Raises:
            TooLargeError: It would be more than one body may have.
            NoRoomError: The budget is spent, by others who hold less or not for as long.
        """
        self._budget.take(self, size_bytes)

    def give_back(self) -> None:
        """Hold nothing any more. May be called again."""
        self._budget.give_back(self)


class BodyBudget:
    """Bytes of bodies that the picker holds at a time: they come in, are read, and are on their way out.

    Where it is spent, the request with the most bytes times seconds loses what it holds, and is refused:
    whoever holds much for long. Honest clients, whose bodies are whole within a moment, go on.

    Args:
        total_bytes: Of all bodies.
        each_bytes: Of one.
        clock: In seconds.
    """

    def __init__(self, total_bytes: int, each_bytes: int, clock: Callable[[], float]) -> None:
        self._each_bytes = each_bytes
        self._total_bytes = total_bytes
        self._clock = clock
        self._held_bytes = 0
        self._holders: dict[BodyShare, None] = {}

    @property
    def held_bytes(self) -> int:
        """What all requests hold."""
        return self._held_bytes

    def share(self) -> BodyShare:
        """Of a new request; it holds nothing yet."""
        return BodyShare(self)

    def check(self, share: BodyShare, size_bytes: int) -> None:
        """As `BodyShare.announced`."""
        self._check_each(size_bytes)
        if size_bytes > self._total_bytes - self._held_bytes + self._can_be_lost(share):
            raise NoRoomError(_RETRY)

    def take(self, share: BodyShare, size_bytes: int) -> None:
        """As `BodyShare.take`."""
        self._check_each(share.held_bytes + size_bytes)
        now_s = self._clock()
        if share not in self._holders:
            share.since_s = now_s
        while self._held_bytes + size_bytes > self._total_bytes:
            loser = self._loser(share, size_bytes, now_s)
            if loser is share:
                raise NoRoomError(_RETRY)
            self.give_back(loser)
            loser.lost()
        self._holders[share] = None
        share.held_bytes += size_bytes
        self._held_bytes += size_bytes

    def give_back(self, share: BodyShare) -> None:
        """As `BodyShare.give_back`."""
        self._holders.pop(share, None)
        self._held_bytes -= share.held_bytes
        share.held_bytes = 0

    def _check_each(self, size_bytes: int) -> None:
        if size_bytes > self._each_bytes:
            raise TooLargeError(f"the body is larger than {self._each_bytes} bytes, the most that is taken")

    def _can_be_lost(self, but: BodyShare) -> int:
        return sum(holder.held_bytes for holder in self._holders if not holder.pinned and holder is not but)

    def _loser(self, asking: BodyShare, size_bytes: int, now_s: float) -> BodyShare:
        loser, most = asking, (asking.held_bytes + size_bytes) * (now_s - asking.since_s)
        for holder in self._holders:
            weight = holder.held_bytes * (now_s - holder.since_s)
            if weight > most and not holder.pinned:
                loser, most = holder, weight
        return loser
