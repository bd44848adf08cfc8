"""What each pod may still send and be asked for, remembered for a while after it left."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kvtier_scorer.picker.engines.kv_events.publisher.rate_limit import ByteRate, ByteRateLimiter, wait_s

_KEPT_S: Final = 60.0
_MOST_LEFT: Final = 4096
"""Pods that left; the one that did first is forgotten."""
_LONG_S: Final = 600.0
"""Within its rate for so long, a pod's earlier excesses are forgotten."""
_REPLAYS: Final = 8
"""In a row; a connection that is lost again and again asks for one each time."""
_REPLAY_S: Final = 10.0
"""Until one more may be asked for."""


@dataclass(slots=True)
class PodLimits:
    """The limits of one pod, for all its connections one after another.

    Attributes:
        rate_limiter: How much it may send.
        excesses: How often it sent too much; 1 for the first time, or for the first in 10 minutes.
        resume_s: When it is listened to again.
        replay_failures: Replays that failed, in a row.
        next_replay_s: When it may be asked for a replay again, after one that failed.
        replays_left: How many replays it might be asked for at `last_replay_s`.
        last_replay_s: When it was last asked for one.
        left_s: When the pod left.
    """

    rate_limiter: ByteRateLimiter
    excesses: int = 0
    resume_s: float = 0.0
    replay_failures: int = 0
    next_replay_s: float = 0.0
    replays_left: float = _REPLAYS
    last_replay_s: float = 0.0
    left_s: float = 0.0

    def on_excess(self, began_s: float, now_s: float) -> None:
        """The pod sent too much on a connection of that age: it is left alone, longer each time."""
        self.excesses = self.excesses + 1 if now_s - began_s < _LONG_S else 1
        self.resume_s = now_s + wait_s(self.excesses)

    def may_replay(self, now_s: float) -> bool:
        """Whether the pod may be asked for a replay now."""
        return now_s >= self.next_replay_s and self._replays_left(now_s) >= 1

    def begin_replay(self, now_s: float) -> None:
        """The pod is asked for a replay."""
        self.replays_left, self.last_replay_s = self._replays_left(now_s) - 1, now_s

    def on_replayed(self) -> None:
        """The replay succeeded."""
        self.replay_failures = 0

    def on_replay_failed(self, now_s: float) -> None:
        """The replay failed; the pod is asked less and less often."""
        self.replay_failures += 1
        self.next_replay_s = now_s + wait_s(self.replay_failures)

    def _replays_left(self, now_s: float) -> float:
        return min(_REPLAYS, self.replays_left + (now_s - self.last_replay_s) / _REPLAY_S)


class PodLimitsByAddress:
    """The limits of all pods.

    Args:
        rate: What each pod may send.
        clock: In seconds.
    """

    def __init__(self, rate: ByteRate, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._clock = clock
        self._followed: dict[str, PodLimits] = {}
        self._left: dict[str, PodLimits] = {}

    def follow(self, address: str) -> PodLimits:
        """The limits of a pod, followed from now on: its earlier ones if it left within the last minute."""
        limits = self._left.pop(address, None)
        if limits is None or self._clock() - limits.left_s > _KEPT_S:
            limits = PodLimits(ByteRateLimiter(self._rate, self._clock))
        self._followed[address] = limits
        return limits

    def forget(self, address: str) -> None:
        """The pod is no longer followed; its limits are kept for a minute."""
        limits = self._left[address] = self._followed.pop(address)
        limits.left_s = self._clock()
        if len(self._left) > _MOST_LEFT:
            del self._left[next(iter(self._left))]
