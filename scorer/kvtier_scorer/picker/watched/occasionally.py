"""Keeps a trouble that comes with each request from filling the log."""

from collections.abc import Callable


class Occasionally:
    """Says of each kind of trouble whether it may be told again.

    Args:
        every_s: Seconds between two tellings of one kind.
        clock: In seconds.
    """

    def __init__(self, every_s: float, clock: Callable[[], float]) -> None:
        self._every_s = every_s
        self._clock = clock
        self._told_s: dict[type[Exception], float] = {}

    def may_say(self, kind: type[Exception]) -> bool:
        """Whether to tell of it now, which counts as told."""
        now_s = self._clock()
        if now_s - self._told_s.get(kind, float("-inf")) < self._every_s:
            return False
        self._told_s[kind] = now_s
        return True
