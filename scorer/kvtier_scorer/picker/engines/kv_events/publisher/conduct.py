"""How pods behaved, remembered for a while after they left: who comes back at once is no other pod."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kvtier_scorer.picker.engines.kv_events.publisher.allowance import Allowance, wait_s

_KEPT_S: Final = 60.0
_MOST_LEFT: Final = 4096
"""Pods that left; the one that did first is forgotten."""
_LONG_S: Final = 600.0
"""Within its allowance for so long, a pod's earlier excesses are forgotten."""
_REPLAYS: Final = 8
"""In a row; a connection that is lost again and again asks for one each time."""
_REPLAY_S: Final = 10.0
"""Until one more may be asked for."""


@dataclass(slots=True)
class Conduct:
    """One pod's.

    Attributes:
        allowance: Of all its connections, one after another.
        excesses: How often it sent too much; 1 for the first time, or for the first in 10 minutes.
        again_s: When it is listened to again.
        replay_failures: In a row.
        replay_again_s: When it may be asked for a replay again.
        replays_left: How many it might be asked for at `replayed_s`.
        replayed_s: When it was last asked.
        left_s: When it left.
    """

    allowance: Allowance
    excesses: int = 0
    again_s: float = 0.0
    replay_failures: int = 0
    replay_again_s: float = 0.0
    replays_left: float = _REPLAYS
    replayed_s: float = 0.0
    left_s: float = 0.0

    def exceeded(self, began_s: float, now_s: float) -> None:
        """It sent too much, on a connection that began then: it is left alone, longer each time."""
        self.excesses = self.excesses + 1 if now_s - began_s < _LONG_S else 1
        self.again_s = now_s + wait_s(self.excesses)

    def may_replay(self, now_s: float) -> bool:
        """Whether to ask it for a replay now; if so, that counts."""
        if now_s < self.replay_again_s:
            return False
        left = min(_REPLAYS, self.replays_left + (now_s - self.replayed_s) / _REPLAY_S)
        if left < 1:
            return False
        self.replays_left, self.replayed_s = left - 1, now_s
        return True

    def replayed(self) -> None:
        """It replayed well."""
        self.replay_failures = 0

    def did_not_replay(self, now_s: float) -> None:
        """It did not; it is asked less and less often."""
        self.replay_failures += 1
        self.replay_again_s = now_s + wait_s(self.replay_failures)


class Conducts:
    """Of all pods, by address.

    Args:
        clock: In seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._here: dict[str, Conduct] = {}
        self._left: dict[str, Conduct] = {}

    def came(self, address: str) -> Conduct:
        """A pod is there: its conduct from before, if it left within the last minute."""
        before = self._left.pop(address, None)
        if before is None or self._clock() - before.left_s > _KEPT_S:
            before = Conduct(Allowance(self._clock))
        self._here[address] = before
        return before

    def left(self, address: str) -> None:
        """It is gone."""
        conduct = self._left[address] = self._here.pop(address)
        conduct.left_s = self._clock()
        if len(self._left) > _MOST_LEFT:
            del self._left[next(iter(self._left))]
