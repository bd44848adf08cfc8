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


def parts(event: Event | None) -> Iterator[Event | None]:
    """What together comes to the event; each of few blocks, unless its tokens do not fit its blocks."""
    if event is None or isinstance(event, AllBlocksCleared) or len(event.block_hashes) <= PART_BLOCKS:
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
    for first in range(0, len(event.block_hashes), PART_BLOCKS):
        last = first + PART_BLOCKS
        yield msgspec.structs.replace(
            event,
            block_hashes=event.block_hashes[first:last],
            parent_block_hash=event.block_hashes[first - 1] if first else event.parent_block_hash,
            token_ids=event.token_ids[first * size : last * size],
            extra_keys=event.extra_keys and event.extra_keys[first:last],
        )
