"""The pickers of llm-d-router and of the Gateway API inference extension: weighted scores, the highest wins.

Source: llm-d/llm-d-router v0.10.0 (scorer/queuedepth, scorer/kvcacheutilization, scorer/prefix,
picker/maxscore; dataproducer/approximateprefix/indexer.go and plugin.go, Add and matchLongestPrefix) and
gateway-api-inference-extension v1.4.0 (scorer/prefix, the same) and v1.5.0
(dataproducer/approximateprefix). Equal scores are shuffled. Metrics are as last read: what was sent since
does not count. What differs from an index that knows how engines evict:

- One plain LRU a pod, filled from the first block on with every pick: roots are evicted before tails.
- The walk over a prompt ends where no pod has a block. Until then a pod counts every block that it has, also
  behind one that it lacks and that another pod has.
- A prompt with more blocks than the LRU has entries leaves blocks listed that the LRU has evicted already.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvtier_common.tier import Tier
from kvtier_scorer.config.flavors.gaie import FIXED_ENTRIES, MIN_BLOCK_TOKENS
from kvtier_scorer.config.model import KV_CACHE_UTILIZATION, PREFIX_SCORERS, QUEUE
from kvtier_scorer.index.compiled import compiled
from kvtier_scorer.simulate.blocks import blocks_of
from kvtier_scorer.simulate.lru import add_root_first, new_lru
from kvtier_scorer.simulate.policy import Loads, Situation
from kvtier_scorer.simulate.settings import PodSettings

_GUIDE_TIER_BYTES: Final = 100 * 1024**3
"""The CPU tier that llm-d's guide gives its numbers for (guides/tiered-prefix-cache)."""
_GAIE_MOST_BLOCKS: Final = 256
"""v1.4.0, scheduling/scorer/prefix/plugin.go, DefaultMaxPrefixBlocks, and 1.5's defaultMaxPrefixBlocks: the
first 4,096 tokens of a prompt."""
_GAIE_1_4_GUIDE_ENTRIES: Final = 41_000
"""`lruCapacityPerServer` of the guide's cpu-prefix-cache-scorer (llm-d 0.4.0), for a tier of 100 GiB."""
_GAIE_1_5_BLOCK_TOKENS: Final = 16  # types.go, defaultBlockSizeTokens
_LLM_D_MIN_BLOCK_TOKENS: Final = 64  # dataproducer/approximateprefix/plugin.go, minBlockSizeTokens
_LLM_D_MOST_PREFIX_TOKENS: Final = 131_072  # the same package's types.go, defaultMaxPrefixTokens
_LLM_D_GUIDE_ENTRIES: Final = 82_000
"""`lruCapacityPerServer` of the guide's CPU producer, for a tier of 100 GiB."""


class ApproximateIndex:
    """Which pod is believed to have which block, of those numbered 0 to `named` - 1."""

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


@dataclass(frozen=True, slots=True)
class PrefixScorer:
    """A prefix scorer with an index of its own."""

    weight: int  # its weight
    block_tokens: int  # tokens in an entry
    entries: int  # LRU entries a pod
    most_blocks: int  # entries of a prompt after which it is cut off
    with_rest: bool  # whether what is left after the last full block is an entry too


class ApproximatePicker:
    """Picks by queue, utilization and prefix scores."""

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


def queue_scores(depths: NDArray[np.int64]) -> NDArray[np.float64]:
    """(max - depth) / (max - min), 1 where all are equal (float64)."""
    spread = depths.max() - depths.min()
    return np.ones(len(depths)) if spread == 0 else (depths.max() - depths) / spread


def gaie_1_4_in_guide(situation: Situation) -> ApproximatePicker:
    """1.2 to 1.4 with the guide's numbers: 41,000 entries for 100 GiB where 25,600 are true, 256 blocks seen.

    A prompt of 30,000 tokens then takes 256 entries of either index rather than 1,875, so both hold several
    times as many prompts as the engines do, and hardly ever let one go.
    """
    cpu_entries = _guide_entries(situation.pool.pod, _GAIE_1_4_GUIDE_ENTRIES)
    return _gaie_1_4(situation, cpu_entries, _GAIE_MOST_BLOCKS)


def gaie_1_4_sized(situation: Situation) -> ApproximatePicker:
    """As kvtier's operator configures it: true capacities, whole prompts seen."""
    longest = int(situation.trace.prompt_tokens.max())
    pod = situation.pool.pod
    return _gaie_1_4(situation, pod.blocks[Tier.CPU], max(1, longest // pod.block_tokens))


def _gaie_1_4(situation: Situation, cpu_entries: int, most_blocks: int) -> ApproximatePicker:
    pod = situation.pool.pod
    entries = {Tier.GPU: pod.blocks[Tier.GPU], Tier.CPU: cpu_entries}
    return _two_scorers(situation, entries, pod.block_tokens, most_blocks, with_rest=False)


def gaie_1_5_in_guide(situation: Situation) -> ApproximatePicker:
    """1.5 with the guide's configuration: `lruCapacityPerServer` is ignored, 256 blocks are seen."""
    return _gaie_1_5(situation, _GAIE_1_5_BLOCK_TOKENS, _GAIE_MOST_BLOCKS)


def gaie_1_5_sized(situation: Situation) -> ApproximatePicker:
    """As kvtier's operator configures it: 31,250 entries are the largest tier, whole prompts are seen."""
    pod = situation.pool.pod
    tokens = (pod.blocks[Tier.CPU] or pod.blocks[Tier.GPU]) * pod.block_tokens
    block_tokens = max(-(-tokens // FIXED_ENTRIES), MIN_BLOCK_TOKENS)
    longest = int(situation.trace.prompt_tokens.max())
    return _gaie_1_5(situation, block_tokens, max(1, longest // block_tokens))


def _gaie_1_5(situation: Situation, block_tokens: int, most_blocks: int) -> ApproximatePicker:
    # two producers write to one key, so two prefix scorers read the same: one scorer with the weights of both
    weight = sum(situation.weights[PREFIX_SCORERS[tier]] for tier in (Tier.GPU, Tier.CPU))
    scorer = PrefixScorer(weight, block_tokens, FIXED_ENTRIES, most_blocks, with_rest=False)
    return ApproximatePicker(situation, [scorer])


def llm_d_in_guide(situation: Situation) -> ApproximatePicker:
    """0.9 and 0.10 with the guide's numbers (llm-d, guides/tiered-prefix-cache, from 0.5 on).

    The GPU producer tunes itself: it takes the engine's number of blocks as a number of 64-token entries. The
    CPU producer has 82,000 entries for 100 GiB, and as many more for a larger tier; true are 6,400.
    """
    pod = situation.pool.pod
    cpu_entries = _guide_entries(pod, _LLM_D_GUIDE_ENTRIES)
    return _llm_d(situation, {Tier.GPU: pod.blocks[Tier.GPU], Tier.CPU: cpu_entries})


def llm_d_sized(situation: Situation) -> ApproximatePicker:
    """With the capacities that kvtier's operator writes: the tiers' tokens over the tokens of an entry."""
    pod = situation.pool.pod
    block_tokens = max(_LLM_D_MIN_BLOCK_TOKENS, pod.block_tokens)
    sized = {tier: -(-pod.blocks[tier] * pod.block_tokens // block_tokens) for tier in (Tier.GPU, Tier.CPU)}
    return _llm_d(situation, sized)


def _llm_d(situation: Situation, entries: Mapping[Tier, int]) -> ApproximatePicker:
    block_tokens = max(_LLM_D_MIN_BLOCK_TOKENS, situation.pool.pod.block_tokens)
    most_blocks = _LLM_D_MOST_PREFIX_TOKENS // block_tokens
    return _two_scorers(situation, entries, block_tokens, most_blocks, with_rest=True)


def _two_scorers(
    situation: Situation, entries: Mapping[Tier, int], block_tokens: int, most_blocks: int, *, with_rest: bool
) -> ApproximatePicker:
    scorers = [
        PrefixScorer(
            situation.weights[PREFIX_SCORERS[tier]], block_tokens, number, most_blocks, with_rest=with_rest
        )
        for tier, number in entries.items()
        if number
    ]
    return ApproximatePicker(situation, scorers)


def _guide_entries(pod: PodSettings, entries: int) -> int:
    """The guide's `lruCapacityPerServer` for 100 GiB, as many more for a larger tier; 0 without one."""
    scaled = round(entries * pod.blocks[Tier.CPU] * pod.block_bytes / _GUIDE_TIER_BYTES)
    return max(1, scaled) if pod.blocks[Tier.CPU] else 0
