"""Events as a publisher sends them, without vLLM."""

from collections.abc import Sequence
from typing import Any

import msgspec


def name(token: int) -> bytes:
    """An engine's 32-byte name of a block."""
    return token.to_bytes(32, "big")


def stored_event(
    hashes: Sequence[bytes | int], tokens: Sequence[int], parent: bytes | int | None = None, **more: object
) -> dict[str, Any]:
    size = len(tokens) // len(hashes) if hashes else 0
    return {
        "type": "BlockStored",
        "block_hashes": list(hashes),
        "parent_block_hash": parent,
        "token_ids": list(tokens),
        "block_size": size,
        "lora_id": None,
        "medium": "GPU",
        "lora_name": None,
    } | more


def removed_event(
    hashes: Sequence[bytes | int], medium: str | None = "GPU", **more: object
) -> dict[str, Any]:
    return {"type": "BlockRemoved", "block_hashes": list(hashes), "medium": medium} | more


CLEARED = {"type": "AllBlocksCleared"}


def batch(*events: object) -> bytes:
    return msgspec.msgpack.encode([1.0, list(events), 0])
