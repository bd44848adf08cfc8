"""What is worth writing to disk: what is read faster than computed, within a bound on the disk's wear."""

import math
from dataclasses import dataclass
from typing import Final

_SETTLED_BYTES: Final = 64 << 20
"""Bytes after which a bandwidth is believed; it forgets with the same measure."""
_SETTLED_TOKENS: Final = 8192
_HOUR_S: Final = 3600.0
_BURST_S: Final = 600.0
"""What may be written at once: ten minutes' worth, so that a busy quarter of an hour is not half lost."""
_TRIAL_EVERY: Final = 64
"""Of requests that would not pay, one in so many is served all the same: conditions change."""


@dataclass(slots=True)
class Rate:
    """A rate that follows what is measured: an average in which older amounts fade.

    Args:
        settled: amount after which the rate is believed, and half of it has faded.
    """

    settled: float
    amount: float = 0.0
    seconds: float = 0.0

    def measured(self, amount: float, seconds: float) -> None:
        """Add what was done in how long."""
        fading = 0.5 ** (amount / self.settled)
        self.amount = self.amount * fading + amount
        self.seconds = self.seconds * fading + seconds

    @property
    def per_second(self) -> float | None:
        """The rate, or None while too little was measured."""
        if self.amount < self.settled or self.seconds <= 0:
            return None
        return self.amount / self.seconds


class BreakEven:
    """Whether loading from disk beats computing.

    Reading a token's KV takes bytes_per_token / bandwidth, computing it 1 / prefill rate; both are measured
    while the engine runs, and until they are, the disk gets the benefit of the doubt.
    """

    def __init__(self) -> None:
        self.read_bytes = Rate(_SETTLED_BYTES)
        self.prefill_tokens = Rate(_SETTLED_TOKENS)
        self._refused = 0

    def pays(self, bytes_per_token: float) -> bool:
        """Tell whether tokens of so many bytes should be kept on, and loaded from, the disk."""
        bandwidth, prefill = self.read_bytes.per_second, self.prefill_tokens.per_second
        if bandwidth is None or prefill is None or bytes_per_token / bandwidth < 1 / prefill:
            self._refused = 0
            return True
        self._refused += 1
        return self._refused % _TRIAL_EVERY == 0


class WriteBudget:
    """Bounds the bytes written in any hour: a token bucket (Turner, IEEE Communications, 1986).

    A bucket of b blocks that gains r an hour lets fewer than b + r pass within an hour, so r is the bound and
    one, less b: who writes all the time gets five sixths of the bound.

    Args:
        bytes_per_hour: the bound; 0 for none.
        now_s: a clock's time.
    """

    def __init__(self, bytes_per_hour: int, now_s: float) -> None:
        self._bytes_per_hour = bytes_per_hour
        self._left = math.inf  # blocks; the bucket is full at first
        self._at_s = now_s

    def take(self, count: int, block_bytes: int, now_s: float) -> int:
        """Return how many of `count` blocks may be written now, and take them off."""
        if not self._bytes_per_hour:
            return count
        per_hour = self._bytes_per_hour // block_bytes
        if not per_hour:
            return 0
        most = max(1.0, per_hour * _BURST_S / _HOUR_S)
        gained = (now_s - self._at_s) * (per_hour + 1 - most) / _HOUR_S
        self._left = min(most, self._left + gained)
        self._at_s = now_s
        granted = min(count, int(self._left))
        self._left -= granted
        return granted
