"""When a tier that grows may work: always while the engine is at rest, and little beside its steps."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

AT_REST_S: Final = 0.05
"""Without a step, after which an engine is at rest. The next one waits for the call that is under way then, a
hundredth of this on a CPU, a fortieth on a GPU."""
_LOOK_S: Final = 0.02  # between two looks whether the engine is at rest: each takes the interpreter from it


@dataclass(slots=True)
class Steps:
    """A rank's steps, as plain numbers: the engine's thread writes them in each, that of the growth reads."""

    begun: int = 0  # one more when a step begins
    ended: int = 0  # as many as have begun, when the last one has ended, or on a GPU is queued


class Pace:
    """Has one thread rest between parts of its work, for engines that step while it works.

    Ranks wait for one another: each takes its share in turn of what all of them may take together.
    """

    def __init__(self, steps: Steps, *, ranks: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        self._steps = steps
        self._ranks = ranks
        self._clock = clock
        self._stopping = threading.Event()
        self._seen = -1  # steps begun, when last looked at
        self._since_s = 0.0  # when one was last seen to begin or run

    def stop(self) -> None:
        """End the rest, and let there be no more work."""
        self._stopping.set()

    def rest(self, worked_s: float, share: float, *, least_s: float = 0.0) -> bool:
        """Return when there may be more work; tells whether there may be any.

        Beside steps, work takes at most this share of the time; with an engine at rest, it rests for
        `least_s`.
        """
        begun_s = self._clock()
        rest_s = max(worked_s * (1 / share - 1) * self._ranks, least_s)
        while not self._stopping.is_set():
            rested_s = self._clock() - begun_s
            left_s = (least_s if self._is_engine_at_rest() else rest_s) - rested_s
            if left_s <= 0:
                return True
            self._stopping.wait(min(left_s, _LOOK_S))
        return False

    def _is_engine_at_rest(self) -> bool:
        begun, now_s = self._steps.begun, self._clock()
        if begun != self._seen or self._steps.ended != begun:
            self._seen, self._since_s = begun, now_s
        return now_s - self._since_s >= AT_REST_S
