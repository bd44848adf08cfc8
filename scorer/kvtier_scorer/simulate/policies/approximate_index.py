"""The prefix index of llm-d-router and the Gateway API inference extension, as it is.

Source: llm-d/llm-d-router v0.10.0 (dataproducer/approximateprefix/indexer.go and plugin.go, Add and
matchLongestPrefix) and gateway-api-inference-extension v1.4.0 (scorer/prefix, the same) and v1.5.0. What
differs from an index that knows how engines evict:

- One plain LRU a pod, filled from the first block on with every pick: roots are evicted before tails.
- The walk over a prompt ends where no pod has a block. Until then a pod counts every block that it has, also
  behind one that it lacks and that another pod has.
- A prompt with more blocks than the LRU has entries leaves blocks listed that the LRU has evicted already.
"""

import numpy as np
from numpy.typing import NDArray

from kvtier_scorer.index.compiled import compiled
from kvtier_scorer.simulate.engine.lru import add_root_first, new_lru


class ApproximateIndex:
    """Which pod is believed to have which block.

    Args:
        pods: How many.
        entries: LRU entries a pod.
        named: Blocks are numbered 0 to `named` - 1; -1 is a block that is never looked for.
    """

    def __init__(self, pods: int, entries: int, named: int) -> None:
        self._lru = new_lru(pods, entries, named)
        self._listed = np.zeros((pods, named + 1), np.uint8)

    def match(self, blocks: NDArray[np.int32]) -> NDArray[np.int64]:
        """Blocks of a prompt that count as matched, for each pod (int64)."""
        counts = np.zeros(len(self._listed), np.int64)
        _match(self._listed, blocks, counts)
        return counts

    def add(self, pod: int, blocks: NDArray[np.int32]) -> None:
        """A prompt went to a pod."""
        evicted = np.zeros(len(blocks) + 1, np.int32)
        add_root_first(self._lru, pod, blocks, evicted)
        self._listed[pod, evicted[1 : evicted[0] + 1]] = 0
        self._listed[pod, blocks[blocks >= 0]] = 1


@compiled
def _match(listed: NDArray[np.uint8], blocks: NDArray[np.int32], counts: NDArray[np.int64]) -> None:
    for block in blocks:
        if block < 0:
            return
        anywhere = False
        for pod in range(len(counts)):
            if listed[pod, block]:
                counts[pod] += 1
                anywhere = True
        if not anywhere:
            return
