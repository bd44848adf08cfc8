"""The true caches of the pods, as vLLM keeps them.

- Device: blocks that requests use are pinned; the others are evicted in the order in which they were let go,
  tails before roots (vLLM 0.33.0, v1/core/block_pool.py, free_blocks and kv_cache_manager.free, reversed).
- A prompt that is found altogether still has its last token computed (kv_cache_manager, num_tokens - 1).
- CPU tier and disk: inclusive, in order of use, renewed when a request ends with its first block the newest
  (v1/kv_offload/cpu/policies/lru.py, on_request_finished).

Allowances: a request gets the blocks of its whole answer when it starts, where vLLM hands them out as it goes
and preempts when they run out; blocks are found from the moment at which the request that computes them
starts, and in the tiers from its first token.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kvtier_common.tier import BEYOND_DEVICE, Tier
from kvtier_scorer.simulate.blocks import Blocks
from kvtier_scorer.simulate.lru import FULL, Lru, find_in_tiers, hold, let_go, new_lru, store
from kvtier_scorer.simulate.settings import PoolSettings
from kvtier_scorer.simulate.trace import PoolError


class CacheListener(Protocol):
    """Is told what the caches hold, as vLLM's KV events tell it."""

    def on_stored(self, pod: int, tier: Tier, blocks: NDArray[np.int32]) -> None:
        """`blocks` (int32), of one prompt and in its order, came into a tier."""

    def on_removed(self, pod: int, tier: Tier, blocks: NDArray[np.int32]) -> None:
        """`blocks` (int32) left a tier."""


@dataclass(frozen=True, slots=True)
class _Holding:
    blocks: NDArray[np.int32]
    slots: NDArray[np.int32]


class Caches:
    """The caches of all pods.

    Args:
        pool: Sizes.
        blocks: The trace in blocks of the engine.
        listener: Is told of every change; None where nobody listens.

    Raises:
        PoolError: A request needs more blocks than a device has.
    """

    def __init__(self, pool: PoolSettings, blocks: Blocks, listener: CacheListener | None = None) -> None:
        self._blocks = blocks
        self._listener = listener
        pod = pool.pod
        self._held: dict[int, _Holding] = {}
        trace = blocks.trace
        needed = -(-(trace.prompt_tokens + trace.output_tokens) // pod.block_tokens)
        worst = int(needed.argmax())
        if needed[worst] > pod.blocks[Tier.GPU]:
            raise PoolError(
                f"gpu_blocks: request {worst + 1} of the trace needs {needed[worst]:,} blocks of "
                f"{pod.block_tokens} tokens, a pod's device holds {pod.blocks[Tier.GPU]:,}; "
                "give --gpu-tokens more or another trace"
            )
        self._needed = needed
        # more room than all requests together need would stay empty, and only take memory here
        most = int(needed.sum())
        self._tiers = tuple(new_lru(pool.pods, min(pod.blocks[tier], most), blocks.named) for tier in Tier)
        longest = int(needed.max())
        self._found = np.zeros(len(Tier), np.int64)
        self._stored = np.zeros(longest + 1, np.int32)
        self._evicted = np.zeros(longest + 1, np.int32)

    def tier(self, tier: Tier) -> Lru:
        """The caches of one tier, for a look inside."""
        return self._tiers[tier]

    def start(self, pod: int, request: int) -> tuple[Mapping[Tier, int], int] | None:
        """Give a request what it needs.

        Returns:
            Blocks of the prompt that were found in each tier, and how many of the device's blocks are in use
            then; None where too many are.
        """
        holding = self._held.get(request)
        if holding is None:
            needed = int(self._needed[request])
            prompt = self._blocks.of(request)
            blocks = np.full(needed, -1, np.int32)
            blocks[: len(prompt)] = prompt
            holding = self._held[request] = _Holding(blocks, np.empty(needed, np.int32))
        most = (int(self._blocks.trace.prompt_tokens[request]) - 1) // self._blocks.block_tokens
        find_in_tiers(self._tiers, pod, holding.blocks, most, self._found)
        hits = dict(zip(Tier, self._found.tolist(), strict=True))
        on_device = hits[Tier.GPU]
        self._evicted[0] = 0
        in_use = hold(self._tiers[Tier.GPU], pod, holding.blocks, on_device, holding.slots, self._evicted)
        if in_use == FULL:
            return None
        if self._listener is not None:
            new = holding.blocks[on_device:]
            self._tell(pod, Tier.GPU, new[new >= 0])
        return hits, in_use

    def computed(self, pod: int, request: int) -> None:
        """The prompt is computed, and goes to the tiers."""
        self._offload(pod, self._blocks.of(request))

    def end(self, pod: int, request: int) -> int:
        """The answer is complete.

        Returns:
            How many of the device's blocks are in use then.
        """
        holding = self._held.pop(request)
        prompt = int(self._blocks.trace.prompt_tokens[request]) // self._blocks.block_tokens
        # the answer's blocks are new, and older in order of use than the prompt's
        self._offload(pod, holding.blocks[prompt:])
        self._offload(pod, self._named(holding.blocks))
        return let_go(self._tiers[Tier.GPU], pod, holding.slots)

    @staticmethod
    def _named(blocks: NDArray[np.int32]) -> NDArray[np.int32]:
        return blocks[blocks >= 0]

    def _offload(self, pod: int, blocks: NDArray[np.int32]) -> None:
        for tier in BEYOND_DEVICE:
            self._stored[0] = self._evicted[0] = 0
            store(self._tiers[tier], pod, blocks, self._stored, self._evicted)
            if self._listener is not None:
                self._tell(pod, tier, self._stored[1 : self._stored[0] + 1])

    def _tell(self, pod: int, tier: Tier, stored: NDArray[np.int32]) -> None:
        if self._listener is None:
            return
        if self._evicted[0]:
            self._listener.on_removed(pod, tier, self._evicted[1 : self._evicted[0] + 1].copy())
        if len(stored):
            self._listener.on_stored(pod, tier, stored.copy())
