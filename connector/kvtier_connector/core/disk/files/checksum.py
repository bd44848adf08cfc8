"""Checksums of what is written to disk: XXH3, 64 bits (github.com/Cyan4973/xxHash).

They find damage and mistakes, not forgery. Eight bytes: of a million damaged blocks, one in 1.8e13 passes.
"""

import xxhash
from typing_extensions import Buffer


def bound_checksum(whole: int, part: bytes, *data: Buffer) -> int:
    """Return the checksum of data and of where they belong: what is undamaged is still refused elsewhere.

    Args:
        whole: what they are a part of: a block's namespace, or a journal's nonce.
        part: which part: a block's key, or a frame's place.
        data: the bytes as they lie on disk, in one piece or several.
    """
    seed = bound_seed(whole, part)
    if len(data) == 1:
        return seeded_checksum(seed, data[0])
    pieces = xxhash.xxh3_64(seed=seed)
    for piece in data:
        pieces.update(piece)
    return pieces.intdigest()


def bound_seed(whole: int, part: bytes) -> int:
    """Return what binds a checksum to where its data belong, for who does not know that."""
    return xxhash.xxh3_64_intdigest(part, seed=whole)


def seeded_checksum(seed: int, data: Buffer) -> int:
    """Return the bound checksum of data in one piece."""
    return xxhash.xxh3_64_intdigest(data, seed=seed)
