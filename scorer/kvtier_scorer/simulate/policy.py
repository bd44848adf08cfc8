"""What a policy is, what it is built from, and what it sees of the pods' load."""

from dataclasses import dataclass
from random import Random
from typing import Final, Protocol

import numpy as np

from kvtier_scorer.config.model import KV_CACHE_UTILIZATION, PREFIX_SCORERS, QUEUE, ScorerWeights
from kvtier_scorer.simulate.caches import CacheListener
from kvtier_scorer.simulate.settings import PoolSettings
from kvtier_scorer.simulate.trace import Trace


class Loads:
    """Load of each pod, as it was at the last reading: all are read at once, at multiples of the interval.

    Waiting and running requests, and the part of the device's blocks that requests use
    (`vllm:kv_cache_usage_perc`); what is only cached does not count.
    """

    def __init__(self, pods: int, interval_s: float) -> None:
        self.queue_depth = np.zeros(pods, np.int64)
        self.running = np.zeros(pods, np.int64)
        self.kv_cache_utilization = np.zeros(pods, np.float64)
        self.read_at_s = 0.0
        self._now = [(0, 0, 0.0)] * pods
        self._interval_s = interval_s
        self._read = [0] * pods

    def change(self, pod: int, now_s: float, *, queue_depth: int, running: int, utilization: float) -> None:
        """A pod's load from `now_s` on."""
        self._publish(pod, int(now_s / self._interval_s))
        self._now[pod] = (queue_depth, running, utilization)

    def read(self, now_s: float) -> None:
        """Bring what is seen up to the last reading before `now_s`."""
        reading = int(now_s / self._interval_s)
        self.read_at_s = reading * self._interval_s
        for pod in range(len(self._now)):
            self._publish(pod, reading)

    def _publish(self, pod: int, reading: int) -> None:
        if reading > self._read[pod]:
            self._read[pod] = reading
            self.queue_depth[pod], self.running[pod], self.kv_cache_utilization[pod] = self._now[pod]


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
        """Number of the pod that a request of the trace goes to; it goes there."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What a policy is built from."""

    trace: Trace  # the requests
    pool: PoolSettings  # the pods
    weights: ScorerWeights  # of the scorers; only kvtier's own policies take others than the default
    random: Random  # for ties
