"""How much one pod may send, and how soon it is listened to again once it sent more."""

from collections.abc import Callable
from typing import Final

from kvtier_common.backoff import doubled_s

MOST_MESSAGE_BYTES: Final = 4 << 20
"""All its frames together: the tokens of 800,000 in one step."""
LARGE_MESSAGES: Final = 4
"""Of all pods, that are held at a time; those of up to 64 KiB need no room."""
MOST_REPLAY_BYTES: Final = 32 << 20
MOST_REPLAYED: Final = 1 << 15
"""Messages; vLLM keeps 10,000 unless it is told otherwise."""
_BURST_BYTES: Final = 64 << 20
_BYTES_A_SECOND: Final = 4 << 20
"""A pod that computes and evicts 100,000 tokens a second comes to half of it, its blocks counted."""
BLOCK_BYTES: Final = 128
"""What a block or an event counts beside its bytes, be it one: learning it takes up to 10 us."""
_LEAST_BYTES: Final = 1024
"""What a message counts at least: reading it takes time, however short it is."""
_FIRST_S: Final = 1.0
_LONGEST_S: Final = 300.0


class Allowance:
    """One pod's: bytes that it may send now, filled up as time goes by.

    Args:
        clock: In seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._left_bytes = float(_BURST_BYTES)
        self._at_s = clock()

    def take(self, size_bytes: int) -> bool:
        """Takes what was received; whether the pod still is within its allowance."""
        now_s = self._clock()
        self._left_bytes = min(_BURST_BYTES, self._left_bytes + (now_s - self._at_s) * _BYTES_A_SECOND)
        self._at_s = now_s
        self._left_bytes -= max(_LEAST_BYTES, size_bytes)
        return self._left_bytes >= 0


def wait_s(failures: int) -> float:
    """Seconds to wait after so many failures in a row: doubling from 1 s, 5 minutes at most."""
    return doubled_s(_FIRST_S, _LONGEST_S, failures - 1) if failures else 0.0
