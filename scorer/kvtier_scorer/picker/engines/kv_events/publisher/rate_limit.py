"""How much one pod may send, and how soon it is listened to again once it sent more."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kvtier_common.backoff import doubled_s

MOST_MESSAGE_BYTES: Final = 4 << 20
"""All its frames together: the tokens of 800,000 in one step."""
LARGE_MESSAGES: Final = 4
"""Of all pods, that are held at a time; those of up to 64 KiB need no room."""
MOST_REPLAY_BYTES: Final = 32 << 20
MOST_REPLAYED: Final = 1 << 15
"""Messages; vLLM keeps 10,000 unless it is told otherwise."""
BLOCK_BYTES: Final = 128
"""What a block or an event counts beside its bytes, be it one: learning it takes up to 10 us."""
_LEAST_BYTES: Final = 1024
"""What a message counts at least: reading it takes time, however short it is."""
_FIRST_S: Final = 1.0
_LONGEST_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class ByteRate:
    """The rate at which one pod may send.

    Attributes:
        burst_bytes: What it may send at once.
        bytes_per_s: What it may send from then on. A pod that computes and evicts 100,000 tokens a second
            comes to half of the default, its blocks counted.
    """

    burst_bytes: float = 64 << 20
    bytes_per_s: float = 4 << 20


class ByteRateLimiter:
    """A token bucket of bytes for one pod: what it sends empties it, and time fills it up again.

    Args:
        rate: Size of the bucket, and how fast it fills.
        clock: In seconds.
    """

    def __init__(self, rate: ByteRate, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._clock = clock
        self._left_bytes = float(rate.burst_bytes)
        self._at_s = clock()

    @property
    def exceeded(self) -> bool:
        """Whether the pod has sent more than it may."""
        return self._left_bytes < 0

    def consume(self, size_bytes: int) -> None:
        """Counts what was received, 1 KiB at least."""
        now_s = self._clock()
        filled_bytes = self._left_bytes + (now_s - self._at_s) * self._rate.bytes_per_s
        self._left_bytes = min(self._rate.burst_bytes, filled_bytes) - max(_LEAST_BYTES, size_bytes)
        self._at_s = now_s


def wait_s(failures: int) -> float:
    """Seconds to wait after so many failures in a row: doubling from 1 s, 5 minutes at most."""
    return doubled_s(_FIRST_S, _LONGEST_S, failures - 1) if failures else 0.0
