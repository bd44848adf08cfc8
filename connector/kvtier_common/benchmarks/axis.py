"""Where an axis that begins at 0 has its marks."""

from itertools import count
from typing import Final

_STEPS: Final = (1, 2, 5)
_FINEST: Final = -5
"""Power of ten."""


def ticks(longest: float, most: int) -> list[float]:
    """Round values from 0 to the longest.

    Args:
        longest: More than 0.
        most: How many at most, beside the 0.
    """
    distance = next(
        step * 10.0**power
        for power in count(_FINEST)
        for step in _STEPS
        if longest / (step * 10.0**power) <= most
    )
    return [round(number * distance, 6) for number in range(int(longest / distance) + 1)]
