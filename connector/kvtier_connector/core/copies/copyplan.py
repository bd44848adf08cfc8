"""From block numbers to byte ranges: which bytes of the device belong to which bytes of the region.

A slot of the region holds one chunk: `blocks_per_chunk` engine blocks one after another, each block all its
layers' pages one after another. A chunk is thus one contiguous range, which is what a disk or a network
wants, and an engine whose own layout is block-major (BLHNC) needs one copy per block.

Blocks and slots are mostly handed out one after another: a plan keeps them as runs at even distances, found
once for all layers, because looking at each layer's page of each block took longer than a small copy itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Addresses = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Page:
    """Where one layer's page (or, block-major, the whole block) lies."""

    device_address: int  # address of block 0's page on the device
    device_stride_bytes: int  # distance from one block's page to the next block's
    slot_offset_bytes: int  # where the page lies within a block of the region
    size_bytes: int  # bytes to copy


@dataclass(frozen=True, slots=True)
class Layout:
    """The engine's blocks and the region's slots."""

    # for each KV cache group, the pages that make up its part of a block
    groups: tuple[tuple[Page, ...], ...]
    blocks_per_chunk: int  # engine blocks in a slot
    block_bytes: int  # one rank's bytes of a block
    region_address: int  # address of the rank's slice
    # bytes after a slot's blocks, so that the next begins where a disk can read and write
    padding_bytes: int = 0

    @property
    def slot_bytes(self) -> int:
        """Distance from one slot to the next."""
        return self.blocks_per_chunk * self.block_bytes + self.padding_bytes


@dataclass(frozen=True, slots=True)
class Run:
    """Copies of one size at even distances, such as one layer's pages of many blocks."""

    device: int  # address of the first copy on the device
    device_step: int  # distance to the next; negative where the engine hands out blocks downwards
    region: int  # address of the first copy in the region
    region_step: int  # distance to the next
    size_bytes: int  # bytes of each copy
    count: int  # number of copies

    @property
    def total_bytes(self) -> int:
        """Bytes of all its copies."""
        return self.size_bytes * self.count

    def pieces(self, most_bytes: int) -> Iterator["Run"]:
        """Yield the run in parts of at most so many bytes, but of one copy at least."""
        most = max(1, most_bytes // self.size_bytes)
        if self.count <= most:
            yield self
            return
        for first in range(0, self.count, most):
            yield replace(
                self,
                device=self.device + first * self.device_step,
                region=self.region + first * self.region_step,
                count=min(most, self.count - first),
            )


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """What one transfer copies."""

    runs: tuple[Run, ...]

    @property
    def total_bytes(self) -> int:
        """Bytes of all copies."""
        return sum(run.total_bytes for run in self.runs)


def plan_copies(
    layout: Layout,  # where everything lies
    device_blocks: npt.NDArray[np.int32],  # the engine's blocks, group after group
    slots: npt.NDArray[np.int32],  # the region's slots, group after group
    group_sizes: Sequence[int],  # how many of `device_blocks` belong to each group
    # position of each group's first block within its request, in blocks: a transfer may start or end in the
    # middle of a chunk
    first_blocks: Sequence[int],
) -> CopyPlan:
    """Return the copies of one transfer. Raises ValueError: numbers of blocks and slots do not match."""
    runs: list[Run] = []
    for group, blocks, in_region in places_of(layout, device_blocks, slots, group_sizes, first_blocks):
        for block, block_step, offset, offset_step, length in _even_stretches(blocks, in_region):
            start = layout.region_address + offset
            runs += [
                Run(
                    page.device_address + block * page.device_stride_bytes,
                    block_step * page.device_stride_bytes,
                    start + page.slot_offset_bytes,
                    offset_step,
                    page.size_bytes,
                    length,
                )
                for page in layout.groups[group]
            ]
    return CopyPlan(tuple(runs))


def places_of(
    layout: Layout,
    device_blocks: npt.NDArray[np.int32],
    slots: npt.NDArray[np.int32],
    group_sizes: Sequence[int],
    first_blocks: Sequence[int],
) -> Iterator[tuple[int, Addresses, Addresses]]:
    """Yield groups of which there are blocks: number, blocks, and where each block begins in the region.

    For the arguments see `plan_copies`. Raises ValueError: numbers of blocks and slots do not match.
    """
    block_at = slot_at = 0
    for group, (count, first) in enumerate(zip(group_sizes, first_blocks, strict=True)):
        if count == 0:
            continue
        places = first % layout.blocks_per_chunk + np.arange(count)
        chunks = places // layout.blocks_per_chunk
        used = int(chunks[-1]) + 1
        blocks = device_blocks[block_at : block_at + count].astype(np.int64)
        of_group = slots[slot_at : slot_at + used].astype(np.int64)
        if len(blocks) != count or len(of_group) != used:
            raise ValueError(f"{len(device_blocks)} blocks do not fit {len(slots)} slots")
        in_region = (
            of_group[chunks] * layout.slot_bytes + places % layout.blocks_per_chunk * layout.block_bytes
        )
        yield group, blocks, in_region
        block_at += count
        slot_at += used
    if block_at != len(device_blocks) or slot_at != len(slots):
        raise ValueError(f"{len(device_blocks)} blocks do not fit {len(slots)} slots")


def _even_stretches(blocks: Addresses, offsets: Addresses) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield first block, block step, first offset, offset step and length of what lies at even distances."""
    block_steps, offset_steps = np.diff(blocks), np.diff(offsets)
    turns = (block_steps[1:] != block_steps[:-1]) | (offset_steps[1:] != offset_steps[:-1])
    final = len(blocks) - 1
    start = 0
    for last in [*(np.flatnonzero(turns) + 1).tolist(), final]:
        if last < start or last == start < final:
            continue  # a single block may begin the next stretch of even steps
        block_step, offset_step = (
            (int(block_steps[start]), int(offset_steps[start])) if last > start else (0, 0)
        )
        yield int(blocks[start]), block_step, int(offsets[start]), offset_step, last - start + 1
        start = last + 1


@dataclass(frozen=True, slots=True)
class Copies:
    """Single copies: addresses on both sides, and bytes; each array has one entry per copy."""

    device: Addresses
    region: Addresses
    sizes: Addresses


def single_copies(plan: CopyPlan, region_address: int = 0, piece_bytes: int = 0) -> Copies:
    """Return a plan's copies one by one; a run whose copies follow one another on both sides is one copy.

    No copy crosses the pieces of `piece_bytes` that are page-locked one by one, the first at
    `region_address`; 0 if all of the region is one.
    """

    def is_one_copy(run: Run) -> bool:
        first, last = run.region - region_address, run.region - region_address + run.total_bytes - 1
        is_in_one_piece = not piece_bytes or first // piece_bytes == last // piece_bytes
        return run.device_step == run.region_step == run.size_bytes and is_in_one_piece

    rows = [
        (run.device, 0, run.region, 0, run.total_bytes, 1)
        if is_one_copy(run)
        else (run.device, run.device_step, run.region, run.region_step, run.size_bytes, run.count)
        for run in plan.runs
    ]
    device, device_step, region, region_step, size, count = np.array(rows, np.int64).reshape(-1, 6).T
    run = np.repeat(np.arange(len(rows)), count)
    nth: Addresses = np.arange(len(run)) - (np.cumsum(count) - count)[run]
    return Copies(device[run] + nth * device_step[run], region[run] + nth * region_step[run], size[run])
