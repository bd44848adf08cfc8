"""Times measured several times, and what to say of them."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Samples:
    """One time, measured at least once.

    Attributes:
        seconds: Each measurement, in the order taken.
    """

    seconds: tuple[float, ...]

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Samples":
        """Samples of any sequence.

        Raises:
            ValueError: There are none.
        """
        if not seconds:
            raise ValueError("no samples")
        return cls(tuple(seconds))

    @property
    def median_s(self) -> float:
        """The median."""
        return statistics.median(self.seconds)

    @property
    def quartiles_s(self) -> tuple[float, float]:
        """First and third quartile; the samples themselves where there is only one."""
        if len(self.seconds) == 1:
            return self.seconds[0], self.seconds[0]
        first, _, third = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return first, third

    def to_json(self) -> dict[str, Any]:
        """Median, spread and every sample, for a report."""
        first, third = self.quartiles_s
        return {
            "median_s": self.median_s,
            "min_s": min(self.seconds),
            "max_s": max(self.seconds),
            "quartile_1_s": first,
            "quartile_3_s": third,
            "samples_s": list(self.seconds),
        }
