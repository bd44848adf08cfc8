"""What an engine has learnt of its disk and of itself, kept in the tier's folder for the next one."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Final, Self

from kvtier_common.formats.json_text import parse_json_object
from kvtier_connector.core.disk.worth.prefill_model import Pace

_CHANGED: Final = 0.1
"""What is kept is written again when a figure is off by so much."""


@dataclass(frozen=True, slots=True)
class Rates:
    """What was measured last; None where nothing was.

    Attributes:
        read_bytes_per_s: of the disk.
        token_s: of computing, as in Pace.
        position_s: likewise.
    """

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
            found = parse_json_object(text)
            rates = cls(**{name: None if value is None else float(value) for name, value in found.items()})
        except (ValueError, TypeError):
            return cls()
        return rates if all(_is_possible(value) for value in asdict(rates).values()) else cls()

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


def _is_possible(value: float | None) -> bool:
    return value is None or (isfinite(value) and value >= 0)
