"""How long to wait before trying again: twice as long each time."""

import random
from typing import Final

_DOUBLINGS: Final = 16
"""Further ones come to a number that no float has, sooner or later."""


def doubled_s(first_s: float, longest_s: float, times: int) -> float:
    """The first wait, doubled so many times.

    Args:
        first_s: Seconds.
        longest_s: Never more.
        times: Below 0 it is halved.
    """
    return min(longest_s, first_s * 2.0 ** min(times, _DOUBLINGS))


def backoff_s(failures: int, *, first_s: float = 0.2, longest_s: float = 60.0) -> float:
    """Seconds to wait after so many failures in a row: doubling, a quarter of it random."""
    whole = doubled_s(first_s, longest_s, failures - 1)
    return whole * (1 - random.random() / 4)  # noqa: S311 - spreads load, no secret
