"""What became of each request of a trace."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from kvtier_common.tier import Tier
from kvtier_scorer.simulate.traces.trace import Trace


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """Arrays with one element a request.

    Attributes:
        trace: The requests.
        pods: How many pods there were.
        block_tokens: Tokens in a block.
        pod: Where each went (int64).
        sent_s: When each was sent (float64).
        first_token_s: When its first token came (float64).
        end_s: When its last one did (float64).
        hit_tokens: Found in each tier, shape (tiers, requests) (int64).
        started: Requests in the order in which their pods started them.
    """

    trace: Trace
    pods: int
    block_tokens: int
    pod: NDArray[np.int64]
    sent_s: NDArray[np.float64]
    first_token_s: NDArray[np.float64]
    end_s: NDArray[np.float64]
    hit_tokens: NDArray[np.int64]
    started: list[int] = field(default_factory=list)

    @classmethod
    def empty(cls, trace: Trace, pods: int, block_tokens: int) -> Self:
        """Before anything happened: pods are -1 and times NaN."""
        requests = len(trace)
        sent_s, first_token_s, end_s = (np.full(requests, np.nan) for _ in range(3))
        hit_tokens = np.zeros((len(Tier), requests), np.int64)
        pod = np.full(requests, -1, np.int64)
        return cls(trace, pods, block_tokens, pod, sent_s, first_token_s, end_s, hit_tokens)

    def start(self, request: int, hits: Mapping[Tier, int]) -> None:
        """A request's pod starts it."""
        self.started.append(request)
        self.hit_tokens[:, request] = [hits[tier] * self.block_tokens for tier in Tier]

    @property
    def ttft_s(self) -> NDArray[np.float64]:
        """Seconds until each first token, waiting included (float64)."""
        return self.first_token_s - self.sent_s
