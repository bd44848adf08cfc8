"""A prompt as chained block hashes: `hash[i] = xxh64(block i, seed=hash[i - 1])`.

A hash stands for its block and everything before it, so two prompts share the hash at `i` if, and but for a
collision of 64-bit hashes only if, they share the model, the salt and all blocks up to `i`. Only full blocks
count: engines share nothing smaller. Calling a library for each block would cost more than the hashing: XXH64
is a kernel after https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md (constants and steps are
its own), tested to equal the xxhash library.
"""

import numpy as np
import xxhash
from numpy.typing import NDArray

from kvtier_scorer.index.compiled import compiled, compiled_part

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
_STRIPE = 32
Hashes = NDArray[np.uint64]
TOKEN_BYTES = 4  # a token is hashed as uint32, little-endian
_LENGTH_BYTES = 8


@compiled_part
def _rotate(value: np.uint64, bits: int) -> np.uint64:
    return (value << np.uint64(bits)) | (value >> np.uint64(64 - bits))


@compiled_part
def _round(lane: np.uint64, word: np.uint64) -> np.uint64:
    return _rotate(lane + word * _P2, 31) * _P1


@compiled_part
def _merge(total: np.uint64, lane: np.uint64) -> np.uint64:
    return (total ^ _round(np.uint64(0), lane)) * _P1 + _P4


@compiled_part
def _word(data: NDArray[np.uint8], at: int, size: int) -> np.uint64:
    """`size` bytes from `at` on, little-endian. With a constant size it becomes one load."""
    word = np.uint64(0)
    for i in range(size):
        word |= np.uint64(data[np.uint64(at + i)]) << np.uint64(8 * i)
    return word


@compiled_part
def xxh64(data: NDArray[np.uint8], start: int, length: int, seed: np.uint64) -> np.uint64:
    """The XXH64 of `data[start:start + length]`. The caller answers for the bounds."""
    at = start
    end = start + length
    if length >= _STRIPE:
        a, b, c, d = seed + _P1 + _P2, seed + _P2, seed, seed - _P1
        while at + _STRIPE <= end:
            a = _round(a, _word(data, at, 8))
            b = _round(b, _word(data, at + 8, 8))
            c = _round(c, _word(data, at + 16, 8))
            d = _round(d, _word(data, at + 24, 8))
            at += _STRIPE
        total = _rotate(a, 1) + _rotate(b, 7) + _rotate(c, 12) + _rotate(d, 18)
        total = _merge(_merge(_merge(_merge(total, a), b), c), d)
    else:
        total = seed + _P5
    total += np.uint64(length)
    while at + 8 <= end:
        total = _rotate(total ^ _round(np.uint64(0), _word(data, at, 8)), 27) * _P1 + _P4
        at += 8
    if at + 4 <= end:
        total = _rotate(total ^ (_word(data, at, 4) * _P1), 23) * _P2 + _P3
        at += 4
    while at < end:
        total = _rotate(total ^ (np.uint64(data[np.uint64(at)]) * _P5), 11) * _P1
        at += 1
    total = (total ^ (total >> np.uint64(33))) * _P2
    total = (total ^ (total >> np.uint64(29))) * _P3
    return total ^ (total >> np.uint64(32))


def prefix_seed(model: str, salt: str, *, tokens: bool) -> int:
    """What a prompt's chain starts from: the xxh64 of everything but its tokens that keeps prefixes apart.

    Each part is preceded by its length, so `("ab", "c")` and `("a", "bc")` differ, as do text and tokens
    that happen to be the same bytes.
    """
    kind = b"tokens" if tokens else b"text"
    parts = (kind, model.encode(errors="surrogatepass"), salt.encode(errors="surrogatepass"))
    return xxhash.xxh64_intdigest(
        b"".join(len(part).to_bytes(_LENGTH_BYTES, "little") + part for part in parts)
    )


def text_hashes(text: bytes, seed: int, block_bytes: int, max_blocks: int) -> Hashes:
    """The chained hashes of `text`, one for each full block of `block_bytes`, at most `max_blocks`.

    Raises ValueError: `block_bytes` is less than 1.
    """
    return _chain(np.frombuffer(text, np.uint8), seed, block_bytes, max_blocks)


def token_hashes(token_ids: NDArray[np.uint32], seed: int, block_tokens: int, max_blocks: int) -> Hashes:
    """The chained hashes of `token_ids`, one for each full block of `block_tokens`, at most `max_blocks`.

    Raises ValueError: `block_tokens` is less than 1.
    """
    tokens = np.ascontiguousarray(token_ids, "<u4")
    return _chain(tokens.view(np.uint8), seed, block_tokens * TOKEN_BYTES, max_blocks)


def _chain(data: NDArray[np.uint8], seed: int, block_bytes: int, max_blocks: int) -> Hashes:
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
