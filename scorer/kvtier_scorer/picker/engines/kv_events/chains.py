"""One pod's blocks as its engine names them, and the chained hashes that the index knows them by.

The engine's names follow from its own hash function and seed, so they mean nothing outside of the pod. What
they stand for is told by the tokens that an event carries; events without tokens are understood where the
block was announced before, in whatever tier.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kvtier_common.tier import OF_A_POD, Tier
from kvtier_scorer.config.contract import BYTES_PER_HELD_BLOCK
from kvtier_scorer.index.chain import prefix_seed, token_hashes
from kvtier_scorer.index.layout import SLOT_BYTES
from kvtier_scorer.picker.engines.kv_events.payload import (
    BlockRemoved,
    BlockStored,
    EngineHash,
    blocks_of_text,
    salt_of,
)

_BITS: Final = (1 << 64) - 1
_HASH_BYTES: Final = 8
_ENTRY_BYTES: Final = _HASH_BYTES + SLOT_BYTES  # of each entry: its hash here, and the index's own
_NO_PARENT: Final = bytes(_HASH_BYTES)
_MOST_BLOCK_TOKENS: Final = 1 << 16
"""Of an engine's block, which is learned at once; those of hybrid models have some thousand."""
_WHOLE_PREFIX: Final = frozenset({"full_attention", "mla_attention", "sink_full_attention", "unknown"})
"""Kinds of attention that keep every block of a prompt (vllm/v1/kv_cache_interface.py: KVCacheSpecKind)."""

Chain: TypeAlias = bytes
"""An engine's block in our hashes, 8 bytes each: the one before it (zeros at a prompt's beginning), then its
own. Empty for a block that other prompts' tokens say nothing about, and for those after it."""


class UnalignedBlocksError(ValueError):
    """The engine's block is not a multiple of the index's, or larger than any engine's."""


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive blocks of one prompt, for the index: our hashes (uint64), in the order of the prompt."""

    tier: Tier
    hashes: NDArray[np.uint64]
    parent: int | None  # the hash before them; None at a prompt's beginning


@dataclass(slots=True)
class PodChains:
    """What one pod holds, tier by tier, in entries of the index of `block_tokens`. No I/O.

    A block that is announced twice is there until it was removed twice: an engine computes a prompt for two
    requests at a time, and chunks of the tiers below overlap. `not_understood` are blocks that events spoke
    of without enough to know which they are.
    """

    block_tokens: int
    model: str
    not_understood: int = 0
    _held: dict[Tier, dict[int, Chain]] = field(default_factory=lambda: {tier: {} for tier in OF_A_POD})
    _again: dict[Tier, Counter[int]] = field(default_factory=lambda: {tier: Counter() for tier in OF_A_POD})
    _group: int | None = None
    _entries_per_block: int = 1

    def store(self, event: BlockStored, tier: Tier) -> tuple[Run, ...]:
        """Learns blocks; returns what the index has to learn of them.

        Raises UnalignedBlocksError: the engine's block is not a multiple of ours, or larger than any.
        """
        if not self._follows(event.group_idx, event.kv_cache_spec_kind):
            return ()
        keys = list(map(_key, event.block_hashes))
        chains = self._chains(event, keys) if event.token_ids else [self._find(key) for key in keys]
        held, again = self._held[tier], self._again[tier]
        for key, chain in zip(keys, chains, strict=True):
            if chain is None:
                self.not_understood += 1
                continue
            if key in held:
                again[key] += 1
            held[key] = chain
        return tuple(_runs(tier, [chains] if event.token_ids else ([chain] for chain in chains)))

    def remove(self, event: BlockRemoved, tier: Tier) -> tuple[Run, ...]:
        """Forgets blocks; returns what the index has to forget of them."""
        if event.group_idx is not None and self._group not in (None, event.group_idx):
            return ()
        held, again = self._held[tier], self._again[tier]
        gone: list[Chain] = []
        for key in map(_key, event.block_hashes):
            if again and again.get(key):
                again[key] -= 1
                if not again[key]:
                    del again[key]
            elif (chain := held.pop(key, None)) is not None:
                gone.append(chain)
        return tuple(_runs(tier, [gone]))

    def clear(self) -> None:
        """Forgets everything."""
        for tier in OF_A_POD:
            self._held[tier].clear()
            self._again[tier].clear()
        self._group, self._entries_per_block = None, 1

    def everything(self) -> Iterator[Run]:
        """All that is held, blocks before those that follow them."""
        for tier, held in self._held.items():
            yield from _runs(tier, ([chain] for chain in held.values()))

    @property
    def blocks(self) -> int:
        """The engine's blocks that are kept, and those that are there more than once.

        A large one counts as several: for what its entries take.
        """
        block_bytes = BYTES_PER_HELD_BLOCK + (self._entries_per_block - 1) * _ENTRY_BYTES
        held = -(-sum(map(len, self._held.values())) * block_bytes // BYTES_PER_HELD_BLOCK)
        return held + sum(map(len, self._again.values()))

    def held_entries(self, tier: Tier) -> int:
        """Entries of the index that a tier's blocks come to, or would if they were known."""
        return len(self._held[tier]) * self._entries_per_block

    def _follows(self, group: int | None, kind: str | None) -> bool:
        """Whether a KV cache group tells which prefixes there are: the first that keeps whole prefixes."""
        if kind is not None and kind not in _WHOLE_PREFIX:
            return False
        if self._group is None:
            self._group = group
        return group is None or group == self._group

    def _chains(self, event: BlockStored, keys: Sequence[int]) -> list[Chain | None]:
        """Chains of an event's blocks; None from the first one that cannot be told on."""
        if event.block_size <= 0 or event.block_size % self.block_tokens:
            raise UnalignedBlocksError(
                f"the engine's block has {event.block_size} tokens, not a multiple of {self.block_tokens}"
            )
        if event.block_size > _MOST_BLOCK_TOKENS:
            raise UnalignedBlocksError(
                f"the engine's block has {event.block_size} tokens, more than {_MOST_BLOCK_TOKENS}"
            )
        self._entries_per_block = max(self._entries_per_block, event.block_size // self.block_tokens)
        known = list(takewhile(lambda chain: chain is not None, map(self._find, keys)))
        if len(known) < len(keys):
            known += self._compute(event, len(known), known[-1] if known else None)
        return known + [None] * (len(keys) - len(known))

    def _find(self, key: int) -> Chain | None:
        for held in self._held.values():
            if (chain := held.get(key)) is not None:
                return chain
        return None

    def _compute(self, event: BlockStored, first: int, before: Chain | None) -> list[Chain]:
        """Chains of the blocks from `first` on; none where the block before them is not known."""
        if before is None and event.parent_block_hash is not None:
            before = self._find(_key(event.parent_block_hash))
            if before is None:
                return []
        if before is not None:
            usable, last = bool(before), before[-_HASH_BYTES:]
            seed = int.from_bytes(last, "little")
        else:
            usable, last = True, _NO_PARENT
            model = event.lora_name or self.model
            seed = prefix_seed(model, salt_of(event), tokens=True)
        size = event.block_size
        if len(event.token_ids) != size * len(event.block_hashes):
            return []
        count = max(0, blocks_of_text(event) - first) if usable else 0
        per_block = size // self.block_tokens
        tokens = np.array(event.token_ids[first * size : (first + count) * size], np.uint32)
        ours = token_hashes(tokens, seed, self.block_tokens, count * per_block).astype("<u8").tobytes()
        step = per_block * _HASH_BYTES
        chains = [
            (ours[at - _HASH_BYTES : at] if at else last) + ours[at : at + step]
            for at in range(0, count * step, step)
        ]
        return chains + [b""] * (len(event.block_hashes) - first - count)


def _key(name: EngineHash) -> int:
    """64 bits of an engine's name, as a number: what it would send itself if it were asked for numbers."""
    if isinstance(name, bytes):
        return int.from_bytes(name[-_HASH_BYTES:], "big")
    return name & _BITS


def _runs(tier: Tier, groups: Iterable[Sequence[Chain | None]]) -> Iterator[Run]:
    """Each group of chains as one run, when it is asked for; those that say nothing are left out."""
    for group in groups:
        known = [chain for chain in group if chain]
        if known:
            parent = known[0][:_HASH_BYTES]
            hashes = np.frombuffer(b"".join(chain[_HASH_BYTES:] for chain in known), "<u8")
            yield Run(tier, hashes, None if parent == _NO_PARENT else int.from_bytes(parent, "little"))
