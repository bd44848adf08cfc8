"""What a KV event's `extra_keys` mean for the chain of a prompt."""

from kvtier_scorer.picker.engines.kv_events.payload.events import BlockStored, key_text


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
