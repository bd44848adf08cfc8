"""The picker of llm-d-router and of the Gateway API inference extension: weighted scores, the highest wins.

Source: scorer/queuedepth, scorer/kvcacheutilization, scorer/prefix and picker/maxscore of llm-d-router
v0.10.0; the extension's are the same. Equal scores are shuffled. Metrics are as last read: what was sent
since does not count.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvtier_common.tier import Tier
from kvtier_scorer.config.model import KV_CACHE_UTILIZATION, QUEUE
from kvtier_scorer.simulate.engine.loads import Loads
from kvtier_scorer.simulate.engine.policy import Situation
from kvtier_scorer.simulate.engine.settings import PodSettings
from kvtier_scorer.simulate.policies.approximate_index import ApproximateIndex
from kvtier_scorer.simulate.traces.blocks import blocks_of

_GUIDE_TIER_BYTES: Final = 100 * 1024**3
"""The CPU tier that llm-d's guide gives its numbers for (guides/tiered-prefix-cache)."""


@dataclass(frozen=True, slots=True)
class PrefixScorer:
    """A prefix scorer with an index of its own.

    Attributes:
        weight: Its weight.
        block_tokens: Tokens in an entry.
        entries: LRU entries a pod.
        most_blocks: Entries of a prompt after which it is cut off.
        with_rest: Whether what is left after the last full block is an entry too.
    """

    weight: int
    block_tokens: int
    entries: int
    most_blocks: int
    with_rest: bool


class ApproximatePicker:
    """Picks by queue, utilization and prefix scores.

    Args:
        situation: Trace, pods and weights of the load scorers.
        scorers: The prefix scorers.
    """

    listener = None

    def __init__(self, situation: Situation, scorers: Sequence[PrefixScorer]) -> None:
        self._weights = situation.weights
        self._random = situation.random
        self._scorers = []
        for scorer in scorers:
            blocks = blocks_of(situation.trace, scorer.block_tokens)
            index = ApproximateIndex(situation.pool.pods, scorer.entries, blocks.named)
            self._scorers.append((scorer, blocks, index))

    def pick(self, request: int, loads: Loads, now_s: float) -> int:  # noqa: ARG002 - a policy's signature
        """The pod with the highest score; every index learns of it."""
        scores = self._weights[QUEUE] * queue_scores(loads.queue_depth)
        scores += self._weights[KV_CACHE_UTILIZATION] * (1.0 - loads.kv_cache_utilization)
        prompts = []
        for scorer, blocks, index in self._scorers:
            prompt = blocks.of(request, scorer.most_blocks, with_rest=scorer.with_rest)
            prompts.append((index, prompt))
            if len(prompt):
                scores += scorer.weight * (index.match(prompt) / len(prompt))
        chosen = int(self._random.choice(np.flatnonzero(scores == scores.max())))
        for index, prompt in prompts:
            index.add(chosen, prompt)
        return chosen


def guide_entries(pod: PodSettings, entries: int) -> int:
    """The guide's `lruCapacityPerServer` for 100 GiB, as many more for a larger tier; 0 without one."""
    scaled = round(entries * pod.blocks[Tier.CPU] * pod.block_bytes / _GUIDE_TIER_BYTES)
    return max(1, scaled) if pod.blocks[Tier.CPU] else 0


def queue_scores(depths: NDArray[np.int64]) -> NDArray[np.float64]:
    """(max - depth) / (max - min), 1 where all are equal (float64)."""
    spread = depths.max() - depths.min()
    return np.ones(len(depths)) if spread == 0 else (depths.max() - depths) / spread
