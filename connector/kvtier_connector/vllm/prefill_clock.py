"""How fast the engine computes prompts, seen from its scheduler."""

import time
from collections import deque
from typing import Final

from kvtier_connector.core.disk.admission import Rate

_PREFILL_TOKENS: Final = 256
"""A step of so many tokens computes a prompt; decoding steps have one token a request."""


class PrefillClock:
    """Measures steps from being scheduled, or from the end of the one before, to their end."""

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._steps = deque[tuple[int, float]]()
        self._last_end_s = 0.0

    def scheduled(self, tokens: int) -> None:
        """Take note of a step that begins."""
        self._steps.append((tokens, time.monotonic()))

    def ended(self) -> None:
        """Take note of the end of the oldest step."""
        now = time.monotonic()
        if self._steps:
            tokens, start_s = self._steps.popleft()
            if tokens >= _PREFILL_TOKENS:
                self._rate.measured(tokens, now - max(start_s, self._last_end_s))
        self._last_end_s = now
