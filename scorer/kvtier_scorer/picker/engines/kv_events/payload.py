"""vLLM's KV events as they are on the wire (vllm/distributed/kv_events.py), and what they mean.

A batch is a msgpack array. Its events are maps in vLLM 0.32 and arrays in older ones; both are read, and what
a newer vLLM appends to either is passed over.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Final, TypeAlias

import msgspec

from kvtier_common.tier import OF_A_POD, Tier

EngineHash: TypeAlias = int | bytes
"""As the engine names a block: bytes, or 64 bits of them where it is asked for integers."""
TokenId: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
Hashes: TypeAlias = Annotated[list[EngineHash], msgspec.Meta(max_length=1 << 16)]
Tokens: TypeAlias = Annotated[list[TokenId], msgspec.Meta(max_length=1 << 20)]
Keys: TypeAlias = Annotated[list[msgspec.Raw], msgspec.Meta(max_length=64)]
"""Of one block; read only as far as it matters, because anything may be in them."""
_FIXARRAY: Final = range(0x90, 0xA0)
_ARRAYS: Final = frozenset({*_FIXARRAY, 0xDC, 0xDD})
_KNOWN: Final = frozenset({"BlockStored", "BlockRemoved", "AllBlocksCleared"})
_TEXT: Final = msgspec.msgpack.Decoder(str)
_TIERS: Final[Mapping[str, Tier]] = {**{tier.name: tier for tier in OF_A_POD}, "STORAGE": Tier.DISK}
"""vLLM's own are GPU, CPU and STORAGE (vllm/distributed/kv_events.py); kvtier's connector uses these too."""
PART_BLOCKS: Final = 512  # a few milliseconds, at up to 10 us a block
_BLOCK_TOKENS: Final = 16
"""What a block has where it is not large: larger ones count as several, for their tokens are hashed."""
_CLEARING_BLOCKS: Final = 4  # what a reset of the caches counts, as a number of blocks


class MalformedEventsError(ValueError):
    """Not vLLM's KV events; the message says where, in one line."""


class BlockStored(msgspec.Struct, tag=True, gc=False):
    """Blocks that can be used in a tier from now on."""

    block_hashes: Hashes  # the engine's names of the blocks, in the order of the prompt
    parent_block_hash: EngineHash | None  # the block before them; None where they begin a prompt
    token_ids: Tokens  # tokens of all of them; empty where the event does not describe itself
    block_size: int  # tokens of a block; 0 where the event does not describe itself
    lora_id: int | None = None
    medium: str | None = None  # where; None for the device
    lora_name: str | None = None  # adapter that the KV was computed with; `lora_id` is not used
    # what else than tokens decides each block's KV: (adapter, (image, offset)..., salt, ...)
    extra_keys: Annotated[list[Keys | None], msgspec.Meta(max_length=1 << 16)] | None = None
    group_idx: int | None = None  # KV cache group of a hybrid model, with attention of `kv_cache_spec_kind`
    kv_cache_spec_kind: str | None = None


class BlockRemoved(msgspec.Struct, tag=True, gc=False):
    """Blocks that are no longer in a tier."""

    block_hashes: Hashes
    medium: str | None = None
    group_idx: int | None = None


class AllBlocksCleared(msgspec.Struct, tag=True, gc=False):
    """The prefix cache was reset."""


class _StoredArray(BlockStored, tag="BlockStored", array_like=True, gc=False):
    """As engines send it whose events are arrays."""


class _RemovedArray(BlockRemoved, tag="BlockRemoved", array_like=True, gc=False):
    """As engines send it whose events are arrays."""


class _ClearedArray(AllBlocksCleared, tag="AllBlocksCleared", array_like=True, gc=False):
    """As engines send it whose events are arrays."""


class _Batch(msgspec.Struct, array_like=True, gc=False):
    ts: float
    events: Annotated[list[msgspec.Raw], msgspec.Meta(max_length=1 << 16)]


class _Kind(msgspec.Struct, gc=False):
    type: str = ""


class _KindOfArray(msgspec.Struct, array_like=True, gc=False):
    type: str = ""


Event: TypeAlias = BlockStored | BlockRemoved | AllBlocksCleared
_BATCH: Final = msgspec.msgpack.Decoder(_Batch)
_MAP: Final = msgspec.msgpack.Decoder(BlockStored | BlockRemoved | AllBlocksCleared)
_ARRAY: Final = msgspec.msgpack.Decoder(_StoredArray | _RemovedArray | _ClearedArray)
_KIND: Final = msgspec.msgpack.Decoder(_Kind)
_KIND_OF_ARRAY: Final = msgspec.msgpack.Decoder(_KindOfArray)


def decode(payload: bytes) -> Iterator[Event | None]:
    """Reads one message's payload: the events of one engine step, in their order, each when it is asked for.

    An event of a kind that is not known is None. Raises MalformedEventsError: it is no batch, or an event of
    a known kind is not as it should be.
    """
    try:
        batch = _BATCH.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedEventsError(f"not a batch of KV events: {error}") from error
    yield from map(_event, batch.events)


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
        return (_KIND_OF_ARRAY if memoryview(raw)[0] in _ARRAYS else _KIND).decode(raw).type
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""


def key_text(key: msgspec.Raw) -> str | None:
    """One of the extra keys, if it is a text."""
    try:
        return _TEXT.decode(key)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def salt_of(event: BlockStored) -> str:
    """The cache_salt of the prompt that an event's first block begins; empty without one.

    The salt is a string among the first block's keys, after the adapter's name
    (vllm/v1/core/kv_cache_utils.py: generate_block_hash_extra_keys, to_event_extra_keys).
    """
    keys = list(map(key_text, (event.extra_keys or [None])[0] or ()))
    if event.lora_name and keys[:1] == [event.lora_name]:
        del keys[0]
    return next((key for key in keys if key is not None), "")


def blocks_of_text(event: BlockStored) -> int:
    """How many of an event's blocks, from its first, are decided by tokens, adapter and salt alone.

    Tokens in place of an image are the same for every image, so blocks from the first image on say nothing
    about other prompts with these tokens; embeddings given as a prompt have no tokens at all.
    """
    for place, keys in enumerate(event.extra_keys or ()):
        if any(key_text(key) is None for key in keys or ()):
            return place
    return len(event.block_hashes)


def tier_of(medium: str | None) -> Tier | None:
    """The tier of an event's medium; the device where it has none, None for a medium that is not known."""
    return Tier.GPU if medium is None else _TIERS.get(medium.upper())


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
        yield from _stored_parts(event)


def _stored_parts(event: BlockStored) -> Iterator[BlockStored]:
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
