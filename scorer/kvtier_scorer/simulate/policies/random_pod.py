"""Any pod."""

from kvtier_scorer.simulate.engine.loads import Loads
from kvtier_scorer.simulate.engine.policy import Situation


class RandomPod:
    """Picks a pod at random, whatever they do."""

    listener = None

    def __init__(self, situation: Situation) -> None:
        self._pods = situation.pool.pods
        self._random = situation.random

    def pick(self, request: int, loads: Loads, now_s: float) -> int:  # noqa: ARG002 - a policy's signature
        """A pod at random."""
        return self._random.randrange(self._pods)
