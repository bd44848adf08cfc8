"""Keeps what somebody else can bring about as often as they like from filling the log."""

import logging
from collections.abc import Callable
from typing import TypeAlias

_Kind: TypeAlias = type[BaseException] | str


class LogRateLimiter:
    """Logs each kind of line at most once in a while, and how often it was left out in between.

    Args:
        log: The logger to write to.
        every_s: Seconds between two lines of one kind.
        clock: In seconds.
    """

    def __init__(self, log: logging.Logger, every_s: float, clock: Callable[[], float]) -> None:
        self._log = log
        self._every_s = every_s
        self._clock = clock
        self._logged_at_s: dict[_Kind, float] = {}
        self._suppressed: dict[_Kind, int] = {}

    def log(self, level: int, kind: _Kind, message: str, *args: object) -> None:
        """Writes one line, unless one of this kind was written a moment ago.

        Args:
            level: A level of `logging`.
            kind: What the line is about, such as the kind of an error.
            message: With places for `args`, as `logging` has it.
            args: Values; pass what a client chose through `printable` first.
        """
        now_s = self._clock()
        if now_s - self._logged_at_s.get(kind, float("-inf")) < self._every_s:
            self._suppressed[kind] = self._suppressed.get(kind, 0) + 1
            return
        self._logged_at_s[kind] = now_s
        suppressed = self._suppressed.pop(kind, 0)
        if suppressed:
            message += " (and %d times more since this was last told)"
            args = (*args, suppressed)
        self._log.log(level, message, *args)
