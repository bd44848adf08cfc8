"""One pod after another."""

from kvtier_scorer.simulate.engine.loads import Loads
from kvtier_scorer.simulate.engine.policy import Situation


class RoundRobin:
    """Picks the pods in turn, whatever they do."""

    listener = None

    def __init__(self, situation: Situation) -> None:
        self._pods = situation.pool.pods
        self._next = 0

    def pick(self, request: int, loads: Loads, now_s: float) -> int:  # noqa: ARG002 - a policy's signature
        """The next pod."""
        number = self._next
        self._next = (number + 1) % self._pods
        return number
