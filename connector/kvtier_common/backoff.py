"""How long to wait before trying again: twice as long each time."""

import random
from dataclasses import dataclass
from typing import Final

_DOUBLINGS: Final = 16  # further ones come to a number that no float has, sooner or later


def doubled_s(first_s: float, longest_s: float, times: int) -> float:
    """The first wait, doubled so many times, below 0 halved; never more than the longest."""
    return min(longest_s, first_s * 2.0 ** min(times, _DOUBLINGS))


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits that double from failure to failure, a quarter of each random so that retries spread out."""

    first_s: float
    longest_s: float

    def delay_s(self, failures: int) -> float:
        """Seconds to wait after so many failures in a row."""
        whole_s = doubled_s(self.first_s, self.longest_s, failures - 1)
        return whole_s * (1 - random.random() / 4)  # noqa: S311 - spreads load, no secret
