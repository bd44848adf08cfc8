"""The true caches of the pods, as vLLM keeps them.

- Device: blocks that requests use are pinned; the others are evicted in the order in which they were let go,
  tails before roots (vLLM 0.33.0, v1/core/block_pool.py, free_blocks and kv_cache_manager.free, reversed).
- A prompt that is found altogether still has its last token computed (kv_cache_manager, num_tokens - 1).
- CPU tier and disk: inclusive, in order of use, renewed when a request ends with its first block the newest
  (v1/kv_offload/cpu/policies/lru.py, on_request_finished).
- Remote tier: one for all pods, in order of use; a block goes there when a pod uses it a second time, as
  kvtier's connector has it.
- Hints and tenants: those of the pod's tiers weigh them as hinted.py says, from a prompt's first token on and
  anew at the answer's end. What is never to leave the device does not.

Allowances: a request gets the blocks of its whole answer when it starts, where vLLM hands them out as it goes
and preempts when they run out; blocks are found from the moment at which the request that computes them
starts, and in the tiers from its first token.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kvtier_common.tier import OF_A_POD, Tier
from kvtier_scorer.simulate.blocks import Blocks
from kvtier_scorer.simulate.hinted import Hinted, new_hinted, store_hinted
from kvtier_scorer.simulate.lru import FULL, Lru, find_in_tiers, hold, let_go, new_lru, store
from kvtier_scorer.simulate.settings import PoolSettings
from kvtier_scorer.simulate.trace import PoolError


class CacheListener(Protocol):
    """Is told what the caches hold, as vLLM's KV events tell it."""

    def on_stored(self, pod: int, tier: Tier, blocks: NDArray[np.int32]) -> None:
        """`blocks` (int32), of one prompt and in its order, came into a tier."""

    def on_removed(self, pod: int, tier: Tier, blocks: NDArray[np.int32]) -> None:
        """`blocks` (int32) left a tier."""


class Caches:
    """The caches of all pods; `listener` is told of every change."""

    def __init__(self, pool: PoolSettings, blocks: Blocks, listener: CacheListener | None = None) -> None:
        self._blocks = blocks
        self._listener = listener
        pod = pool.pod
        self._held: dict[int, tuple[NDArray[np.int32], NDArray[np.int32]]] = {}
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
        sizes = {tier: min(pod.blocks[tier], most) for tier in OF_A_POD}
        self._hinted: dict[Tier, Hinted] = {}
        if trace.hinted:
            self._hinted = {tier: new_hinted(pool, sizes[tier], blocks.named, trace) for tier in OF_A_POD[1:]}
        self._tiers = tuple(
            self._hinted[tier].lru if tier in self._hinted else new_lru(pool.pods, size, blocks.named)
            for tier, size in sizes.items()
        )
        store = pool.store
        self._store: tuple[Lru, ...] = (new_lru(1, min(store.blocks, most), blocks.named),) if store else ()
        longest = int(needed.max())
        self._found = np.zeros(len(Tier), np.int64)
        self._stored = np.zeros(longest + 1, np.int32)
        self._evicted = np.zeros(longest + 1, np.int32)

    def tier(self, tier: Tier) -> Lru:
        """The caches of one tier, for a look inside."""
        [lru] = self._store if tier.shared else (self._tiers[tier],)
        return lru

    def start(
        self, pod: int, request: int, pays: Callable[[Mapping[Tier, int]], bool]
    ) -> tuple[Mapping[Tier, int], int] | None:
        """Give a request what it needs.

        Args:
            pod: Its pod.
            request: Its number.
            pays: Whether to read what was found in the remote tier, too, where something was.

        Returns the blocks of the prompt that were found in each tier, and how many of the device's blocks are
        in use then; None where too many are.
        """
        if request not in self._held:
            needed = int(self._needed[request])
            prompt = self._blocks.of(request)
            blocks = np.full(needed, -1, np.int32)
            blocks[: len(prompt)] = prompt
            self._held[request] = (blocks, np.empty(needed, np.int32))
        blocks, slots = self._held[request]
        most = (int(self._blocks.trace.prompt_tokens[request]) - 1) // self._blocks.block_tokens
        find_in_tiers((*self._tiers, *self._store), pod, blocks, most, self._found)
        hits = dict(zip(Tier, self._found.tolist(), strict=True))
        if hits[Tier.REMOTE] and not pays(hits):
            find_in_tiers(self._tiers, pod, blocks, most, self._found)
            hits = dict(zip(Tier, self._found.tolist(), strict=True))
        on_device = hits[Tier.GPU]
        self._evicted[0] = 0
        in_use = hold(self._tiers[Tier.GPU], pod, blocks, on_device, slots, self._evicted)
        if in_use == FULL:
            return None
        if self._listener is not None:
            self._tell(pod, Tier.GPU, _numbered(blocks[on_device:]))
        if not self._blocks.trace.hints[request].never_store:
            self._share(_numbered(blocks[: sum(hits.values())]))
        return hits, in_use

    def offload_prompt(self, pod: int, request: int, now_s: float) -> None:
        """The prompt is computed, and goes to the tiers."""
        self._offload(pod, request, now_s, self._blocks.of(request))

    def end(self, pod: int, request: int, now_s: float) -> int:
        """The answer is complete; returns how many of the device's blocks are in use then."""
        blocks, slots = self._held.pop(request)
        prompt = int(self._blocks.trace.prompt_tokens[request]) // self._blocks.block_tokens
        # the answer's blocks are new, and older in order of use than the prompt's
        self._offload(pod, request, now_s, blocks[prompt:])
        self._offload(pod, request, now_s, _numbered(blocks))
        return let_go(self._tiers[Tier.GPU], pod, slots)

    def _offload(self, pod: int, request: int, now_s: float, blocks: NDArray[np.int32]) -> None:
        hints = self._blocks.trace.hints[request]
        if hints.never_store:
            return
        for tier in OF_A_POD[1:]:
            self._stored[0] = self._evicted[0] = 0
            if tier in self._hinted:
                hinted = self._hinted[tier]
                if hints.retain_s:
                    hinted.until_s[request] = now_s + hints.retain_s
                store_hinted(hinted, pod, request, now_s, blocks, self._stored, self._evicted)
            else:
                store(self._tiers[tier], pod, blocks, self._stored, self._evicted)
            if self._listener is not None:
                self._tell(pod, tier, self._stored[1 : self._stored[0] + 1])

    def _share(self, used: NDArray[np.int32]) -> None:
        """What a pod has found it uses a second time; of the store nobody is told."""
        for lru in self._store:
            self._stored[0] = self._evicted[0] = 0
            store(lru, 0, used, self._stored, self._evicted)
            self._evicted[0] = 0

    def _tell(self, pod: int, tier: Tier, stored: NDArray[np.int32]) -> None:
        if self._listener is None:
            return
        if self._evicted[0]:
            self._listener.on_removed(pod, tier, self._evicted[1 : self._evicted[0] + 1].copy())
        if len(stored):
            self._listener.on_stored(pod, tier, stored.copy())


def _numbered(blocks: NDArray[np.int32]) -> NDArray[np.int32]:
    return blocks[blocks >= 0]
