"""The percentile that benchmarks report."""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil


def p90(values: Sequence[float]) -> float:
    """The smallest value that at least 90 % of them do not exceed (nearest rank)."""
    return sorted(values)[ceil(Fraction(9, 10) * len(values)) - 1]
