"""An event loop whose time passes only when a test lets it."""

import asyncio
import selectors
from collections.abc import Callable
from typing import Final

_ROUNDING_S: Final = 1e-6


class _NoWaiting(selectors.DefaultSelector):
    """Where the loop would wait, it is told to stop; for how long it would have waited is kept."""

    idle: Callable[[], object]
    wait_s: float | None = None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if not found and (timeout is None or timeout > 0):
            self.wait_s = timeout
            self.idle()
        return found


class ModelLoop(asyncio.SelectorEventLoop):
    """Runs what can run now, and nothing else, each time it is told to."""

    def __init__(self) -> None:
        self._now_s = 0.0
        self._no_waiting = _NoWaiting()
        self._no_waiting.idle = self.stop
        super().__init__(self._no_waiting)

    def time(self) -> float:
        """Seconds that were let pass."""
        return self._now_s

    def run_ready(self) -> None:
        """Runs everything until all of it waits for time or for the test."""
        self.run_forever()

    def next_timer_s(self) -> float | None:
        """Seconds until something is due; None where nothing ever is."""
        return self._no_waiting.wait_s

    def pass_time(self, seconds: float) -> None:
        """Lets time pass, timer by timer."""
        until_s = self._now_s + seconds
        while True:
            self.run_ready()
            wait_s = self._no_waiting.wait_s
            if wait_s is None or self._now_s + wait_s > until_s:
                break
            self._now_s += max(wait_s, _ROUNDING_S)
        self._now_s = until_s
        self.run_ready()
