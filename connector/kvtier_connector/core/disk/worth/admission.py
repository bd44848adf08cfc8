"""What is worth writing to disk: what is read sooner than computed, within a bound on the disk's wear."""

import math
from dataclasses import dataclass
from enum import Enum
from typing import Final

from kvtier_connector.core.disk.worth.prefill_model import PrefillModel, TokenSpan
from kvtier_connector.core.disk.worth.rates import Rates

_FADING_BYTES: Final = 64 << 20
"""Read bytes after which an older bandwidth counts half."""
_BELIEVED_S: Final = 0.01
"""For how long a disk is taken to have been as fast as an earlier engine said: new figures count more."""
_MARGIN: Final = 1.05
_MARGIN_S: Final = 0.003
"""By how much reading must be sooner: figures are a little off, and a request that waits for the disk takes
more rounds through the engine."""
_HOUR_S: Final = 3600.0
_BURST_S: Final = 600.0
"""What may be written at once: ten minutes' worth, so that a busy quarter of an hour is not half lost."""


@dataclass(slots=True)
class Bandwidth:
    """Bytes a second that follow what is measured: an average in which older reads fade.

    Attributes:
        size_bytes: what was read.
        seconds: how long that took.
    """

    size_bytes: float = 0.0
    seconds: float = 0.0

    def measured(self, size_bytes: float, seconds: float) -> None:
        """Add what was read in how long."""
        fading = 0.5 ** (size_bytes / _FADING_BYTES)
        self.size_bytes = self.size_bytes * fading + size_bytes
        self.seconds = self.seconds * fading + seconds

    @property
    def per_second(self) -> float | None:
        """Bytes a second; None while nothing was measured."""
        return self.size_bytes / self.seconds if self.seconds > 0 else None


class ReadingPays(Enum):
    """Whether reading is sooner than computing."""

    PAYS = "pays"
    DOES_NOT = "does not"
    NOT_KNOWN = "not known"


class BreakEven:
    """Compares reading a prompt's tokens from disk with computing them, by what was measured.

    Nobody waits for a disk of which it is not known that it is sooner: what is not known of it is found out
    beside the engine (probe.py), and the engine's own pace with the first prompt that it computes.

    Args:
        kept: what an earlier engine found.
        always: say that it pays, whatever was measured.
    """

    def __init__(self, kept: Rates | None = None, *, always: bool = False) -> None:
        kept = kept or Rates()
        self._always = always
        self.read = Bandwidth()
        self.prefill = PrefillModel(kept.pace)
        if kept.read_bytes_per_s:
            self.read.measured(kept.read_bytes_per_s * _BELIEVED_S, _BELIEVED_S)

    def reading_pays(self, span: TokenSpan, size_bytes: float) -> ReadingPays:
        """Tell whether tokens are read sooner than they are computed.

        Args:
            span: the tokens.
            size_bytes: what has to be read until they are there.
        """
        bandwidth, pace = self.read.per_second, self.prefill.pace
        if self._always:
            return ReadingPays.PAYS
        if bandwidth is None or pace is None:
            return ReadingPays.NOT_KNOWN
        read_s = size_bytes / bandwidth
        return ReadingPays.PAYS if read_s * _MARGIN + _MARGIN_S < pace.seconds(span) else ReadingPays.DOES_NOT

    @property
    def rates(self) -> Rates:
        """What is to be kept for the next engine."""
        pace = self.prefill.pace
        if pace is None:
            return Rates(self.read.per_second)
        return Rates(self.read.per_second, pace.token_s, pace.position_s)

    def describe(self, span: TokenSpan, size_bytes: float) -> str:
        """Return the two times, for people."""
        bandwidth, pace = self.read.per_second, self.prefill.pace
        if bandwidth is None or pace is None:
            return "nothing was measured yet"
        return (
            f"{span.tokens} tokens are read in {size_bytes / bandwidth:.2f} s ({bandwidth / 1e9:.2f} "
            f"GB/s) and computed in {pace.seconds(span):.2f} s"
        )


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
