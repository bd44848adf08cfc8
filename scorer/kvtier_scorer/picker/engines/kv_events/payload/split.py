"""Cuts a long event, so that nobody waits for the whole of it."""

from collections.abc import Iterator
from typing import Final

import msgspec

from kvtier_scorer.picker.engines.kv_events.payload.events import (
    AllBlocksCleared,
    BlockRemoved,
    BlockStored,
    Event,
)

PART_BLOCKS: Final = 512
"""A few milliseconds, at up to 10 us a block."""
_BLOCK_TOKENS: Final = 16
"""What a block has where it is not large: larger ones count as several, for their tokens are hashed."""
_CLEARING_BLOCKS: Final = 4
"""What a reset of the caches counts, as a number of blocks."""


def cost(event: Event | None) -> int:
    """What an event takes to learn, in blocks of 16 tokens; 1 for one of a kind that is not known."""
    if event is None:
        return 1
    if isinstance(event, AllBlocksCleared):
        return _CLEARING_BLOCKS
    tokens = len(event.token_ids) if isinstance(event, BlockStored) else 0
    return 1 + max(len(event.block_hashes), tokens // _BLOCK_TOKENS)


def parts(event: Event | None) -> Iterator[Event | None]:
    """What together comes to the event; each of little cost, unless its tokens do not fit its blocks."""
    if event is None or isinstance(event, AllBlocksCleared) or cost(event) <= PART_BLOCKS:
        yield event
    elif isinstance(event, BlockRemoved):
        for first in range(0, len(event.block_hashes), PART_BLOCKS):
            yield msgspec.structs.replace(event, block_hashes=event.block_hashes[first : first + PART_BLOCKS])
    elif event.token_ids and len(event.token_ids) != event.block_size * len(event.block_hashes):
        yield event
    else:
        yield from _stored(event)


def _stored(event: BlockStored) -> Iterator[BlockStored]:
    size = event.block_size if event.token_ids else 0
    step = max(1, PART_BLOCKS // max(1, size // _BLOCK_TOKENS))
    for first in range(0, len(event.block_hashes), step):
        last = first + step
        yield msgspec.structs.replace(
            event,
            block_hashes=event.block_hashes[first:last],
            parent_block_hash=event.block_hashes[first - 1] if first else event.parent_block_hash,
            token_ids=event.token_ids[first * size : last * size],
            extra_keys=event.extra_keys and event.extra_keys[first:last],
        )
