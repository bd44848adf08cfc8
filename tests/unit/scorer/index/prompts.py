"""Prompts that share prefixes, as the chained hashes of their blocks."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from kvtier_scorer.index.chain import text_hashes
from kvtier_scorer.index.prefix_index import PrefixIndex

BLOCK_BYTES = 8


@cache
def prompt(*runs: tuple[int, int]) -> NDArray[np.uint64]:
    """The hashes of a prompt of runs of blocks, each a name and a length: equal runs are equal blocks."""
    blocks = [np.arange(length, dtype="<u8") + (name << 32) for name, length in runs]
    text = np.concatenate(blocks).tobytes() if blocks else b""
    hashes = text_hashes(text, 1, BLOCK_BYTES, len(text))
    hashes.flags.writeable = False
    return hashes


def matched_blocks(index: PrefixIndex, hashes: NDArray[np.uint64], *pods: int) -> list[list[int]]:
    """For each pod what its GPU, CPU and disk tiers hold of a prompt."""
    return index.match(hashes, np.array(pods, np.int32)).T.tolist()  # type: ignore[no-any-return]
