"""The pod with the fewest waiting requests, as last read."""

import numpy as np

from kvtier_scorer.simulate.engine.loads import Loads
from kvtier_scorer.simulate.engine.policy import Situation


class LeastQueue:
    """Picks the shortest queue; of equal ones the fewest running requests, then any."""

    listener = None

    def __init__(self, situation: Situation) -> None:
        self._random = situation.random

    def pick(self, request: int, loads: Loads, now_s: float) -> int:  # noqa: ARG002 - a policy's signature
        """The least busy pod."""
        shortest = np.flatnonzero(loads.queue_depth == loads.queue_depth.min())
        running = loads.running[shortest]
        return int(self._random.choice(shortest[running == running.min()]))
