"""How long an engine takes to compute tokens of a prompt, learnt from its steps."""

from dataclasses import dataclass
from typing import Final, Self

_FADING_TOKENS: Final = 1 << 17
"""Computed tokens after which a step counts half: an engine's pace changes with what else it serves."""
_LEAST_DETERMINANT: Final = 1e-6
"""Of the two sums' correlation, below which all steps began at one place: the slope is not known then."""


@dataclass(frozen=True, slots=True)
class TokenSpan:
    """Tokens of prompts that are computed, or would be.

    Attributes:
        tokens: how many.
        positions: the sum of their positions in their prompts: attention looks back at all before.
    """

    tokens: int
    positions: float

    @classmethod
    def of(cls, first: int, last: int) -> Self:
        """Return the tokens from position `first` up to `last`."""
        return cls(last - first, (last * last - first * first) / 2)

    def __add__(self, other: "TokenSpan") -> "TokenSpan":
        return TokenSpan(self.tokens + other.tokens, self.positions + other.positions)


@dataclass(frozen=True, slots=True)
class Pace:
    """What tokens cost: dense layers the same each, attention more the further back it looks.

    Attributes:
        token_s: seconds for a token.
        position_s: and for each token before it.
    """

    token_s: float
    position_s: float

    def seconds(self, span: TokenSpan) -> float:
        """Return how long tokens take."""
        return self.token_s * span.tokens + self.position_s * span.positions


class PrefillModel:
    """Fits a Pace to steps by least squares of their relative errors, in which older steps fade.

    Args:
        pace: what an earlier engine found, until this one has computed; None if it is not known.
    """

    def __init__(self, pace: Pace | None = None) -> None:
        self.pace = pace
        self._tokens2 = self._positions2 = self._both = self._tokens1 = self._positions1 = 0.0

    def measured(self, computed: TokenSpan, seconds: float) -> None:
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
        self.pace = self._fitted()

    def _fitted(self) -> Pace:
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
