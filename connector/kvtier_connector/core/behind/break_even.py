"""Whether reading from a tier pays: how fast it is, and the engine, and what may be written."""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Final

from typing_extensions import Self

from kvtier_common.formats.json_text import parse_json_object

_FADING_TOKENS: Final = 1 << 17
"""Computed tokens after which a step counts half: an engine's pace changes with what else it serves."""
_LEAST_DETERMINANT: Final = 1e-6
"""Of the two sums' correlation, below which all steps began at one place: the slope is not known then."""
_CHANGED: Final = 0.1  # what is kept is written again when a figure is off by so much
_FADING_BYTES: Final = 64 << 20  # read bytes after which an older bandwidth counts half
_BELIEVED_S: Final = 0.01
"""For how long a disk is taken to have been as fast as an earlier engine said: new figures count more."""
_MARGIN: Final = 1.05
_MARGIN_S: Final = 0.003
"""By how much reading must be sooner: figures are a little off, and a request that waits for the disk takes
more rounds through the engine."""
_PLAUSIBLE: Final = {
    "read_bytes_per_s": (1e3, 1e12),
    "token_s": (0.0, 1e3),
    "position_s": (0.0, 1.0),
}
"""Least and most that is believed: others may write what is kept in a store."""
_HOUR_S: Final = 3600.0
_BURST_S: Final = 600.0
"""What may be written at once: ten minutes' worth, so that a busy quarter of an hour is not half lost."""


@dataclass(frozen=True, slots=True)
class TokenSpan:
    """Tokens of prompts that are computed, or would be."""

    tokens: int  # how many
    positions: float  # the sum of their positions in their prompts: attention looks back at all before

    @classmethod
    def of(cls, first: int, last: int) -> Self:
        """Return the tokens from position `first` up to `last`."""
        return cls(last - first, (last * last - first * first) / 2)

    def __add__(self, other: "TokenSpan") -> "TokenSpan":
        return TokenSpan(self.tokens + other.tokens, self.positions + other.positions)


@dataclass(frozen=True, slots=True)
class Pace:
    """What tokens cost: dense layers the same each, attention more the further back it looks."""

    token_s: float  # seconds for a token
    position_s: float  # and for each token before it

    def seconds(self, span: TokenSpan) -> float:
        """Return how long tokens take."""
        return self.token_s * span.tokens + self.position_s * span.positions


class PrefillModel:
    """Fits a Pace to steps by least squares of their relative errors, in which older steps fade.

    It begins with what an earlier engine found.
    """

    def __init__(self) -> None:
        self.pace: Pace | None = None
        self._tokens2 = self._positions2 = self._both = self._tokens1 = self._positions1 = 0.0

    def add(self, computed: TokenSpan, seconds: float) -> None:
        """Learn how long a step took."""
        if seconds <= 0 or not computed.tokens:
            return
        fading = 0.5 ** (computed.tokens / _FADING_TOKENS)
        tokens, positions = computed.tokens / seconds, computed.positions / seconds
        self._tokens2 = self._tokens2 * fading + tokens * tokens
        self._positions2 = self._positions2 * fading + positions * positions
        self._both = self._both * fading + tokens * positions
        self._tokens1 = self._tokens1 * fading + tokens
        self._positions1 = self._positions1 * fading + positions
        self.pace = self._fit()

    def _fit(self) -> Pace:
        by_tokens = Pace(self._tokens1 / self._tokens2, 0.0)
        determinant = self._tokens2 * self._positions2 - self._both * self._both
        if determinant <= _LEAST_DETERMINANT * self._tokens2 * self._positions2:
            return by_tokens
        token_s = (self._tokens1 * self._positions2 - self._positions1 * self._both) / determinant
        position_s = (self._positions1 * self._tokens2 - self._tokens1 * self._both) / determinant
        if position_s < 0:
            return by_tokens
        if token_s < 0:
            return Pace(0.0, self._positions1 / self._positions2)
        return Pace(token_s, position_s)


@dataclass(frozen=True, slots=True)
class Rates:
    """What was measured last, of computing as in Pace; None where nothing was."""

    read_bytes_per_s: float | None = None
    token_s: float | None = None
    position_s: float | None = None

    @property
    def pace(self) -> Pace | None:
        """The engine's."""
        if self.token_s is None or self.position_s is None:
            return None
        return Pace(self.token_s, self.position_s)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `text` has written; of anything else, nothing is known."""
        try:
            figures = parse_json_object(text)
            rates = cls(**{name: None if value is None else float(value) for name, value in figures.items()})
        except (ValueError, TypeError):
            return cls()
        known = ((value, _PLAUSIBLE[name]) for name, value in asdict(rates).items() if value is not None)
        return rates if all(least <= value <= most for value, (least, most) in known) else cls()

    def text(self) -> str:
        """Return it as `parse` reads it."""
        return json.dumps(asdict(self)) + "\n"

    def says_more_than(self, other: Self) -> bool:
        """Tell whether it has a figure that the other lacks."""
        return any(mine is not None and its is None for mine, its in self._beside(other))

    def differs(self, other: Self) -> bool:
        """Tell whether it should be kept in the other's place."""
        return any(
            mine is not None and abs(mine - (its or 0)) > _CHANGED * (its or 0)
            for mine, its in self._beside(other)
        )

    def _beside(self, other: Self) -> Iterator[tuple[float | None, float | None]]:
        # Not by asdict, which copies: this is looked at in every step of the engine.
        yield self.read_bytes_per_s, other.read_bytes_per_s
        yield self.token_s, other.token_s
        yield self.position_s, other.position_s


@dataclass(slots=True)
class Bandwidth:
    """Bytes a second that follow what is measured: an average in which older reads fade."""

    size_bytes: float = 0.0
    seconds: float = 0.0

    def add(self, size_bytes: float, seconds: float) -> None:
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
    beside the engine (`probe`), and the engine's own pace with the first prompt that it computes. It begins
    with what an earlier engine found; with `always` it says that reading pays, whatever was measured.
    """

    def __init__(self, kept: Rates | None = None, *, always: bool = False) -> None:
        self._always = always
        self.read = Bandwidth()
        self.prefill = PrefillModel()
        self.believe(kept or Rates())

    def believe(self, rates: Rates) -> None:
        """Begin with what another engine has found, as far as nothing is known yet."""
        if self.prefill.pace is None:
            self.prefill.pace = rates.pace
        if self.read.per_second is None and rates.read_bytes_per_s:
            self.read.add(rates.read_bytes_per_s * _BELIEVED_S, _BELIEVED_S)

    def reading_pays(self, span: TokenSpan, size_bytes: float) -> ReadingPays:
        """Tell whether tokens are read, with so many bytes until they are there, sooner than computed."""
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
