"""Checksums of what is written to disk: XXH3, 64 bits (github.com/Cyan4973/xxHash).

They find damage and mistakes, not forgery. Eight bytes: of a million damaged blocks, one in 1.8e13 passes.
"""

import xxhash
from typing_extensions import Buffer


def payload_checksum(namespace: int, key: bytes, payload: Buffer) -> int:
    """Return the checksum of a block's bytes.

    Namespace and key are part of it: a block that is whole is still refused where another one belongs.

    Args:
        namespace: checksum of all that decides what KV bytes mean.
        key: the block's key.
        payload: the block's bytes, as they lie on disk.
    """
    return xxhash.xxh3_64_intdigest(payload, seed=xxhash.xxh3_64_intdigest(key, seed=namespace))
