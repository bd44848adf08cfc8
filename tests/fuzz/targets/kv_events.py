"""Messages of engines' KV events."""

from typing import Final

import msgspec

from kvtier_scorer.picker.engines.kv_events.payload import MalformedEventsError, decode

_STORED: Final = {
    "type": "BlockStored",
    "block_hashes": [b"a" * 32, 5],
    "parent_block_hash": None,
    "token_ids": [1, 2, 3, 4],
    "block_size": 2,
    "medium": "GPU",
    "extra_keys": [["salt"], None],
}
SEEDS: Final = [
    msgspec.msgpack.encode([1.0, events])
    for events in (
        [_STORED],
        [{"type": "BlockRemoved", "block_hashes": [7], "medium": "CPU"}, {"type": "AllBlocksCleared"}],
        [["BlockStored", [1], None, [1, 2], 2, None, None], ["BlockRemoved", [1], None], ["New", 1]],
        [],
    )
]


def run(data: bytes) -> None:
    """A batch, or the error that says why not."""
    try:
        list(decode(data))
    except MalformedEventsError:
        return
