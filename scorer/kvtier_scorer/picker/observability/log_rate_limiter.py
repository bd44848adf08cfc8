"""Keeps an error that comes with each request from filling the log."""

import logging
from collections.abc import Callable


class LogRateLimiter:
    """Logs each kind of error at most once in a while, and how often it was left out in between.

    Args:
        log: The logger to write to.
        every_s: Seconds between two lines of one kind.
        clock: In seconds.
    """

    def __init__(self, log: logging.Logger, every_s: float, clock: Callable[[], float]) -> None:
        self._log = log
        self._every_s = every_s
        self._clock = clock
        self._logged_at_s: dict[type[BaseException], float] = {}
        self._suppressed: dict[type[BaseException], int] = {}

    def log(self, level: int, kind: type[BaseException], message: str, *args: object) -> None:
        """Writes one line, unless one of this kind was written a moment ago.

        Args:
            level: A level of `logging`.
            kind: The kind of error that the line is about.
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
