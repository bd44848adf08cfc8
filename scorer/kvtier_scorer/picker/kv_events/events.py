"""vLLM's KV events as they are on the wire (vllm/distributed/kv_events.py).

A batch is a msgpack array. Its events are maps in vLLM 0.32 and arrays in older ones; both are read, and what
a newer vLLM appends to either is passed over.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

import msgspec

EngineHash: TypeAlias = int | bytes
"""As the engine names a block: bytes, or 64 bits of them where it is asked for integers."""
TokenId: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
_FIXARRAY: Final = range(0x90, 0xA0)
_ARRAYS: Final = frozenset({*_FIXARRAY, 0xDC, 0xDD})


class MalformedEventsError(ValueError):
    """Not vLLM's KV events; the message says where, in one line."""


class BlockStored(msgspec.Struct, tag=True, gc=False):
    """Blocks that can be used in a tier from now on.

    Attributes:
        block_hashes: The engine's names of the blocks, in the order of the prompt.
        parent_block_hash: The block before them; None where they begin a prompt.
        token_ids: Tokens of all of them; empty where the event does not describe itself.
        block_size: Tokens of a block; 0 where the event does not describe itself.
        lora_id: Not used; `lora_name` is what the others know an adapter by.
        medium: Where; None for the device.
        lora_name: Adapter that the KV was computed with.
        extra_keys: What else than tokens decides each block's KV: (adapter, (image, offset)..., salt, ...).
        group_idx: KV cache group of a hybrid model.
        kv_cache_spec_kind: What kind of attention that group has.
    """

    block_hashes: list[EngineHash]
    parent_block_hash: EngineHash | None
    token_ids: list[TokenId]
    block_size: int
    lora_id: int | None = None
    medium: str | None = None
    lora_name: str | None = None
    extra_keys: list[list[Any] | None] | None = None
    group_idx: int | None = None
    kv_cache_spec_kind: str | None = None


class BlockRemoved(msgspec.Struct, tag=True, gc=False):
    """Blocks that are no longer in a tier."""

    block_hashes: list[EngineHash]
    medium: str | None = None
    group_idx: int | None = None


class AllBlocksCleared(msgspec.Struct, tag=True, gc=False):
    """The prefix cache was reset."""


class _StoredArray(BlockStored, tag="BlockStored", array_like=True, gc=False):
    """Of engines whose events are arrays."""


class _RemovedArray(BlockRemoved, tag="BlockRemoved", array_like=True, gc=False):
    """Of engines whose events are arrays."""


class _ClearedArray(AllBlocksCleared, tag="AllBlocksCleared", array_like=True, gc=False):
    """Of engines whose events are arrays."""


class _Batch(msgspec.Struct, array_like=True, gc=False):
    ts: float
    events: list[msgspec.Raw]


Event: TypeAlias = BlockStored | BlockRemoved | AllBlocksCleared
_KNOWN: Final = frozenset({"BlockStored", "BlockRemoved", "AllBlocksCleared"})
_BATCH: Final = msgspec.msgpack.Decoder(_Batch)
_MAP: Final = msgspec.msgpack.Decoder(BlockStored | BlockRemoved | AllBlocksCleared)
_ARRAY: Final = msgspec.msgpack.Decoder(_StoredArray | _RemovedArray | _ClearedArray)
_PLAIN: Final = msgspec.msgpack.Decoder()


@dataclass(frozen=True, slots=True)
class Batch:
    """The events of one engine step, in their order.

    Attributes:
        events: Those of a kind that is known.
        unknown: How many of another kind there were.
    """

    events: Sequence[Event]
    unknown: int


def decode(payload: bytes) -> Batch:
    """Reads one message's payload.

    Raises:
        MalformedEventsError: It is no batch, or an event of a known kind is not as it should be.
    """
    try:
        batch = _BATCH.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedEventsError(f"not a batch of KV events: {error}") from error
    events = [event for raw in batch.events if (event := _event(raw)) is not None]
    return Batch(events, len(batch.events) - len(events))


def _event(raw: msgspec.Raw) -> Event | None:
    first = memoryview(raw)[0]
    try:
        event: Event = (_ARRAY if first in _ARRAYS else _MAP).decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        if _kind(raw) in _KNOWN:
            raise MalformedEventsError(f"a KV event is malformed: {error}") from error
        return None
    return event


def _kind(raw: msgspec.Raw) -> str:
    """The kind of an event that could not be read; empty where it has none."""
    try:
        plain = _PLAIN.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError):
        return ""
    kind = (
        plain.get("type")
        if isinstance(plain, dict)
        else plain[0]
        if isinstance(plain, list) and plain
        else ""
    )
    return kind if isinstance(kind, str) else ""
