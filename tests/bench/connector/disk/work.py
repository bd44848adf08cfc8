"""The blocks that every side of the disk benchmark stores and loads, and what a side is."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

import numpy as np
import numpy.typing as npt

Op = Literal["load", "store"]
OPS: Final[tuple[Op, ...]] = ("load", "store")
_PAGE_BYTES: Final = 4096
_NO_BLOCK: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Work:
    """What is measured.

    Args:
        folder: where a side keeps its files.
        block_bytes: size of a block, a multiple of 4,096.
        blocks: number of blocks that each side keeps there.
        sample_blocks: number of them, drawn at random, that one sample stores or loads.
    """

    folder: str
    block_bytes: int
    blocks: int
    sample_blocks: int

    def draw(self, seed: int) -> list[int]:
        """Return the blocks of a sample, in random order, none of them twice."""
        return random.Random(seed).sample(range(self.blocks), self.sample_blocks)  # noqa: S311 - not a secret

    def runs(self) -> Iterator[range]:
        """Yield all blocks, as many at a time as a sample has at most."""
        for first in range(0, self.blocks, self.sample_blocks):
            yield range(first, min(first + self.sample_blocks, self.blocks))

    @property
    def sample_bytes(self) -> int:
        """Bytes of one sample."""
        return self.sample_blocks * self.block_bytes


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement: bytes moved, seconds taken, and seconds of CPU that the side's process took."""

    bytes: int
    seconds: float
    cpu_seconds: float


class Side(Protocol):
    """A tier that stores and loads blocks; it lives in a process of its own."""

    variants: tuple[str, ...]
    """The ways to drive it that are measured, each apart."""

    def before(self, op: Op, blocks: Sequence[int]) -> list[memoryview]:
        """Make ready, unmeasured: blocks to be stored are absent, blocks to be loaded in no page cache.

        Returns:
            For a store, the memory that the blocks are stored from, to be filled by the caller; for a load
            none.
        """

    def run(self, op: Op, blocks: Sequence[int], variant: str) -> None:
        """Store or load blocks; measured, so it returns when all is done."""

    def loaded(self) -> list[memoryview]:
        """Return where the blocks of the last run lie, in their order; valid until the next `before`."""

    def close(self) -> None:
        """Let go of threads, memory and files."""


class Content:
    """What blocks hold: random bytes, and at the head of each page which block and which page this is."""

    def __init__(self, block_bytes: int) -> None:
        self._base = np.random.default_rng(block_bytes).integers(0, 256, block_bytes, dtype=np.uint8)
        self._pages = np.arange(block_bytes // _PAGE_BYTES, dtype=np.uint64)

    def fill(self, memory: memoryview, block: int) -> None:
        """Write a block's content."""
        np.frombuffer(memory, np.uint8)[:] = self._base
        _heads(memory)[:] = self._tags(block)

    def spoil(self, memory: memoryview) -> None:
        """Make the memory no block's, so that a load which brings nothing is seen."""
        _heads(memory)[:] = _NO_BLOCK

    def holds(self, memory: memoryview, block: int, *, whole: bool) -> bool:
        """Tell whether memory holds a block: every page's head, and with `whole` every byte."""
        if not np.array_equal(_heads(memory), self._tags(block)):
            return False
        if not whole:
            return True
        expected = bytearray(len(memory))
        self.fill(memoryview(expected), block)
        return memory == expected

    def _tags(self, block: int) -> npt.NDArray[np.uint64]:
        return self._pages + np.uint64(block << 32)


def _heads(memory: memoryview) -> npt.NDArray[np.uint64]:
    return np.frombuffer(memory, np.uint64)[:: _PAGE_BYTES // 8]
