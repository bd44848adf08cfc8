"""kvtier's own picker with KV events: the pods say what they hold."""

import numpy as np
from numpy.typing import NDArray

from kvtier_common.tier import Tier
from kvtier_scorer.scheduling.model import Pick
from kvtier_scorer.simulate.engine.caches import CacheListener
from kvtier_scorer.simulate.engine.policy import Situation
from kvtier_scorer.simulate.policies.kvtier import Kvtier
from kvtier_scorer.simulate.traces.blocks import blocks_of

_NONE = -1


class KvtierPrecise(Kvtier):
    """Picks with kvtier's scheduler over an index that the simulated caches keep true.

    Events arrive at once. Blocks that no second request has are left out: nothing would ever match them.

    Args:
        situation: Trace, pods and weights.
    """

    def __init__(self, situation: Situation) -> None:
        super().__init__(situation)
        self._blocks = blocks_of(situation.trace, situation.pool.pod.block_tokens)
        self._hash_of = np.zeros(self._blocks.named + 1, np.uint64)
        self._before = np.full(self._blocks.named + 1, _NONE, np.int64)
        self._numbers = {number: own for own, number in self._pods.items()}
        for own in self._pods:
            self._index.set_precise(own, precise=True)

    @property
    def listener(self) -> CacheListener | None:
        """This picker itself."""
        return self

    def on_stored(self, pod: int, tier: Tier, blocks: NDArray[np.int32]) -> None:
        """Tell the index, in runs of blocks that follow one another."""
        gaps = np.flatnonzero(self._before[blocks[1:]] != blocks[:-1]) + 1
        for run in np.split(blocks, gaps):
            before = int(self._before[run[0]])
            parent = None if before == _NONE else int(self._hash_of[before])
            self._index.store(self._numbers[pod], tier, self._hash_of[run], parent)

    def on_removed(self, pod: int, tier: Tier, blocks: NDArray[np.int32]) -> None:
        """Tell the index."""
        self._index.remove(self._numbers[pod], tier, self._hash_of[blocks])

    def _picked(self, request: int, picked: Pick) -> None:
        blocks = self._blocks.of(request, len(picked.hashes))
        named = blocks[blocks >= 0]
        self._hash_of[named] = picked.hashes[: len(named)]
        self._before[named[1:]] = named[:-1]
