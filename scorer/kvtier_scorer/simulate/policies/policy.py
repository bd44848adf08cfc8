"""What a policy is, and what it is built from."""

from dataclasses import dataclass
from random import Random
from typing import Protocol

from kvtier_scorer.config.model import ScorerWeights
from kvtier_scorer.simulate.engine.caches import CacheListener
from kvtier_scorer.simulate.engine.loads import Loads
from kvtier_scorer.simulate.engine.settings import PoolSettings
from kvtier_scorer.simulate.traces.trace import Trace

DEFAULT_WEIGHTS = ScorerWeights(queue=2, kv_cache_utilization=2, gpu_prefix=1, cpu_prefix=1, disk_prefix=0)
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
