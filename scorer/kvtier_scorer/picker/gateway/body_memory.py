"""Memory for the bodies of requests under way: one budget, a share for each, and a body that comes in."""

from collections.abc import Callable
from typing import Final

from kvtier_scorer.errors import BudgetSpentError, TooLargeError

_RETRY: Final = "the picker holds as many bodies as it may; send it again later"
_LONG_BYTES: Final = 4096
"""A shorter part is put to the one before it: an object for each byte would cost forty times the body."""


def _ignore_eviction() -> None:
    """For a share whose request has ended."""


class BodyShare:
    """The part of the budget that one request holds."""

    __slots__ = ("_budget", "held_bytes", "on_evicted", "pinned", "since_s")

    def __init__(self, budget: "BodyBudget") -> None:
        self._budget = budget
        self.held_bytes = 0
        self.since_s = 0.0
        # called when the share was given to other requests; it holds nothing any more then
        self.on_evicted: Callable[[], None] = _ignore_eviction
        self.pinned = False  # whether it must not be evicted now, because its body is being read

    @property
    def body_bytes(self) -> int:
        """Most bytes of one body."""
        return self._budget.body_bytes

    def check_announced(self, size_bytes: int) -> None:
        """Checks the length that a client announced; nothing is held for it yet.

        Raises TooLargeError: it is too long; BudgetSpentError: so much cannot be had now.
        """
        self._budget.check_size(size_bytes)
        if size_bytes > self._budget.free_bytes_for(self):
            raise BudgetSpentError(_RETRY)

    def take(self, size_bytes: int) -> None:
        """Takes more of the budget.

        Raises TooLargeError: it would be more than one body may have; BudgetSpentError: the budget is spent,
        by others who hold less or not for as long.
        """
        self._budget.check_size(self.held_bytes + size_bytes)
        self._budget.grow(self, size_bytes)

    def release(self) -> None:
        """Gives everything back. May be called again."""
        self._budget.release(self)


class BodyBudget:
    """Bytes of bodies that the picker holds at a time: they come in, are read, and are on their way out.

    Where it is spent, the request with the most bytes times seconds loses what it holds, and is refused:
    whoever holds much for long. Honest clients, whose bodies are whole within a moment, go on.
    """

    def __init__(self, total_bytes: int, body_bytes: int, clock: Callable[[], float]) -> None:
        self.body_bytes = body_bytes
        self.held_bytes = 0
        self._total_bytes = total_bytes
        self._clock = clock
        self._holders: dict[BodyShare, None] = {}

    def share(self) -> BodyShare:
        """A share for a new request; it holds nothing yet."""
        return BodyShare(self)

    def check_size(self, size_bytes: int) -> None:
        """Raises TooLargeError: no body may have so many bytes."""
        if size_bytes > self.body_bytes:
            raise TooLargeError(f"the body is larger than {self.body_bytes} bytes, the most that is taken")

    def free_bytes_for(self, share: BodyShare) -> int:
        """What nobody holds, or others who can be evicted."""
        others = (holder for holder in self._holders if not holder.pinned and holder is not share)
        return self._total_bytes - self.held_bytes + sum(holder.held_bytes for holder in others)

    def grow(self, share: BodyShare, size_bytes: int) -> None:
        """See `BodyShare.take`."""
        now_s = self._clock()
        if share not in self._holders:
            share.since_s = now_s
        while self.held_bytes + size_bytes > self._total_bytes:
            evicted = self._largest_holder(share, size_bytes, now_s)
            if evicted is share:
                raise BudgetSpentError(_RETRY)
            self.release(evicted)
            evicted.on_evicted()
        self._holders[share] = None
        share.held_bytes += size_bytes
        self.held_bytes += size_bytes

    def release(self, share: BodyShare) -> None:
        """See `BodyShare.release`."""
        self._holders.pop(share, None)
        self.held_bytes -= share.held_bytes
        share.held_bytes = 0

    def _largest_holder(self, asking: BodyShare, size_bytes: int, now_s: float) -> BodyShare:
        evicted, most = asking, (asking.held_bytes + size_bytes) * (now_s - asking.since_s)
        for holder in self._holders:
            weight = holder.held_bytes * (now_s - holder.since_s)
            if weight > most and not holder.pinned:
                evicted, most = holder, weight
        return evicted


class BodyBuffer:
    """Parts of a body, in their order; they take hardly more memory than their bytes."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[bytes | bytearray] = []

    def add(self, part: bytes) -> None:
        """One more part."""
        parts = self._parts
        if len(part) >= _LONG_BYTES or (part and not parts):
            parts.append(part)
        elif part:
            last = parts[-1]
            if type(last) is bytearray:
                last += part
            else:
                parts.append(bytearray(part))

    def take(self) -> bytes:
        """The whole body, which is not kept here."""
        parts, self._parts = self._parts, []
        # of one part, join would copy a bytearray only
        return parts[0] if len(parts) == 1 and type(parts[0]) is bytes else b"".join(parts)
