"""What a policy is, and what it is built from."""

from dataclasses import dataclass
from random import Random
from typing import Final, Protocol

from kvtier_scorer.config.model import KV_CACHE_UTILIZATION, PREFIX_SCORERS, QUEUE, ScorerWeights
from kvtier_scorer.simulate.engine.caches import CacheListener
from kvtier_scorer.simulate.engine.loads import Loads
from kvtier_scorer.simulate.engine.settings import PoolSettings
from kvtier_scorer.simulate.traces.trace import Trace

WEIGHED: Final = (QUEUE, KV_CACHE_UTILIZATION, *PREFIX_SCORERS.values())
"""Scorers in the order in which weights are written, such as 2:2:1:1."""


def weights_in_order(*weights: int) -> ScorerWeights:
    """Weights of the scorers in the order of `WEIGHED`; those that are left out at the end are 0."""
    return ScorerWeights({**dict.fromkeys(WEIGHED, 0), **dict(zip(WEIGHED, weights, strict=False))})


DEFAULT_WEIGHTS: Final = weights_in_order(2, 2, 1, 1)
"""2:2:1:1, the guide's (llm-d 0.4.0, guides/tiered-prefix-cache/cpu/README.md)."""


class Policy(Protocol):
    """Picks a pod for each request."""

    @property
    def listener(self) -> CacheListener | None:
        """Is told what the pods' caches hold; None where the policy does not know."""

    def pick(self, request: int, loads: Loads, now_s: float) -> int:
        """Number of the pod that a request goes to; it goes there.

        Args:
            request: Number of the request in the trace.
            loads: Metrics as they were last read.
            now_s: Time in the trace.
        """


@dataclass(frozen=True, slots=True)
class Situation:
    """What a policy is built from.

    Attributes:
        trace: The requests.
        pool: The pods.
        weights: Of the scorers; only kvtier's own policies take others than the default.
        random: For ties.
    """

    trace: Trace
    pool: PoolSettings
    weights: ScorerWeights
    random: Random
