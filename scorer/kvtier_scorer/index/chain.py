"""A prompt as chained block hashes: `hash[i] = xxh64(block i, seed=hash[i - 1])`.

A hash stands for its block and everything before it, so two prompts share the hash at `i` if, and but for a
collision of 64-bit hashes only if, they share the model, the salt and all blocks up to `i`. Only full blocks
count: engines share nothing smaller.
"""

import numpy as np
import xxhash
from numpy.typing import NDArray

from kvtier_scorer.index.compiled import compiled
from kvtier_scorer.index.xxh64 import xxh64

Hashes = NDArray[np.uint64]

TOKEN_BYTES = 4
"""A token is hashed as uint32, little-endian."""
_LENGTH_BYTES = 8


def prefix_seed(model: str, salt: str, *, tokens: bool) -> int:
    """What a prompt's chain starts from: the xxh64 of everything but its tokens that keeps prefixes apart.

    Each part is preceded by its length, so `("ab", "c")` and `("a", "bc")` differ, as do text and tokens
    that happen to be the same bytes.

    Args:
        model: The model's name.
        salt: The request's cache_salt; empty without one.
        tokens: Whether the prompt is given as tokens, and not as text.
    """
    kind = b"tokens" if tokens else b"text"
    parts = (kind, model.encode(errors="surrogatepass"), salt.encode(errors="surrogatepass"))
    return xxhash.xxh64_intdigest(
        b"".join(len(part).to_bytes(_LENGTH_BYTES, "little") + part for part in parts)
    )


def text_hashes(text: bytes, seed: int, block_bytes: int, max_blocks: int) -> Hashes:
    """The chained hashes of `text`, one for each full block of `block_bytes`, at most `max_blocks`.

    Raises:
        ValueError: `block_bytes` is less than 1.
    """
    return _chained(np.frombuffer(text, np.uint8), seed, block_bytes, max_blocks)


def token_hashes(token_ids: NDArray[np.uint32], seed: int, block_tokens: int, max_blocks: int) -> Hashes:
    """The chained hashes of `token_ids`, one for each full block of `block_tokens`, at most `max_blocks`.

    Raises:
        ValueError: `block_tokens` is less than 1.
    """
    tokens = np.ascontiguousarray(token_ids, "<u4")
    return _chained(tokens.view(np.uint8), seed, block_tokens * TOKEN_BYTES, max_blocks)


def _chained(data: NDArray[np.uint8], seed: int, block_bytes: int, max_blocks: int) -> Hashes:
    if block_bytes < 1:
        raise ValueError(f"a block has at least 1 byte or token, not {block_bytes}")
    hashes = np.empty(max(0, min(len(data) // block_bytes, max_blocks)), np.uint64)
    # One kind of array, so that one compiled kernel serves all: callers' arrays may be writable or not.
    blocks = data.view()
    blocks.flags.writeable = False
    _fill(blocks, np.uint64(seed), block_bytes, hashes)
    return hashes


@compiled
def _fill(data: NDArray[np.uint8], seed: np.uint64, block_bytes: int, hashes: Hashes) -> None:
    before = seed
    for i in range(len(hashes)):
        before = xxh64(data, i * block_bytes, block_bytes, before)
        hashes[i] = before
