"""Keeps a trouble that comes with each request from filling the log."""

import logging
from collections.abc import Callable


class LogRateLimiter:
    """Tells of each kind of trouble once in a while, and how often it was not told in between.

    Args:
        log: Where.
        every_s: Seconds between two tellings of one kind.
        clock: In seconds.
    """

    def __init__(self, log: logging.Logger, every_s: float, clock: Callable[[], float]) -> None:
        self._log = log
        self._every_s = every_s
        self._clock = clock
        self._told_s: dict[type[BaseException], float] = {}
        self._untold: dict[type[BaseException], int] = {}

    def log(self, level: int, kind: type[BaseException], message: str, *args: object) -> None:
        """One line, unless one of this kind was told a moment ago.

        Args:
            level: Of logging.
            kind: What is told once in a while.
            message: With places for `args`, as logging has it.
            args: What a client chose among them is to be `printable` before.
        """
        now_s = self._clock()
        if now_s - self._told_s.get(kind, float("-inf")) < self._every_s:
            self._untold[kind] = self._untold.get(kind, 0) + 1
            return
        self._told_s[kind] = now_s
        untold = self._untold.pop(kind, 0)
        if untold:
            message += " (and %d times more since this was last told)"
            args = (*args, untold)
        self._log.log(level, message, *args)
