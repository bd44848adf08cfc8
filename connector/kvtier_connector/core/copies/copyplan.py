"""From block numbers to byte ranges: which bytes of the device belong to which bytes of the region.

A slot of the region holds one chunk: `blocks_per_chunk` engine blocks one after another, each block all its
layers' pages one after another. A chunk is thus one contiguous range, which is what a disk or a network
wants, and an engine whose own layout is block-major (BLHNC) needs one copy per block.

Nothing here looks at single blocks in Python where a step waits for it: with blocks and slots handed out
here and there, that took longer than the copies. A GPU gets arrays of single copies. What a CPU copies itself
is better done in runs at even distances, as blocks and slots mostly come.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

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
class _Blocks:
    """What is copied of one KV cache group."""

    pages: tuple[Page, ...]
    numbers: Addresses  # the engine's blocks
    offsets: Addresses  # where each begins in the region's slice

    def runs(self, region_address: int) -> Iterator[Run]:
        """Yield the copies of all pages, as few runs as they make in this order."""
        for block, block_step, offset, offset_step, count in _even_stretches(self.numbers, self.offsets):
            for page in self.pages:
                yield Run(
                    page.device_address + block * page.device_stride_bytes,
                    block_step * page.device_stride_bytes,
                    region_address + offset + page.slot_offset_bytes,
                    offset_step,
                    page.size_bytes,
                    count,
                )

    def copies(self, region_address: int, pieces: Addresses | None) -> "Copies":
        """Return the copies of all pages, neighbours on both sides joined; not of two blocks' pieces."""
        address, stride, offset, size = np.array(
            [
                (page.device_address, page.device_stride_bytes, page.slot_offset_bytes, page.size_bytes)
                for page in self.pages
            ],
            np.int64,
        ).T[:, :, None]
        device = address + self.numbers * stride
        region = self.offsets + (region_address + offset)
        is_first = np.ones(device.shape, np.bool_)
        is_first[:, 1:] = (device[:, 1:] - device[:, :-1] != size) | (region[:, 1:] - region[:, :-1] != size)
        if pieces is not None:
            is_first[:, 1:] |= pieces[1:] != pieces[:-1]
        first = is_first.ravel().nonzero()[0]
        ends = np.empty_like(first)
        ends[:-1], ends[-1] = first[1:], is_first.size
        sizes = size.ravel()[first // len(self.numbers)] * (ends - first)
        return Copies(device.ravel()[first], region.ravel()[first], sizes)


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """What one transfer copies."""

    groups: tuple[_Blocks, ...]
    region_address: int

    @property
    def runs(self) -> tuple[Run, ...]:
        """The copies as runs."""
        return tuple(run for blocks in self.groups for run in blocks.runs(self.region_address))

    @property
    def total_bytes(self) -> int:
        """Bytes of all copies."""
        return sum(
            len(blocks.numbers) * sum(page.size_bytes for page in blocks.pages) for blocks in self.groups
        )


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
    (plan,) = plan_parts([layout], device_blocks, slots, group_sizes, first_blocks)
    return plan


def plan_parts(
    parts: Sequence[Layout],
    device_blocks: npt.NDArray[np.int32],
    slots: npt.NDArray[np.int32],
    group_sizes: Sequence[int],
    first_blocks: Sequence[int],
) -> list[CopyPlan]:
    """Return the copies of one transfer, of the pages of each of some layouts that differ in nothing else.

    For the arguments see `plan_copies`. Raises ValueError: numbers of blocks and slots do not match.
    """
    places = list(_places(parts[0], device_blocks, slots, group_sizes, first_blocks))
    return [
        CopyPlan(
            tuple(
                _Blocks(part.groups[group], blocks, offsets)
                for group, blocks, offsets in places
                if part.groups[group]
            ),
            part.region_address,
        )
        for part in parts
    ]


def _places(
    layout: Layout,
    device_blocks: npt.NDArray[np.int32],
    slots: npt.NDArray[np.int32],
    group_sizes: Sequence[int],
    first_blocks: Sequence[int],
) -> Iterator[tuple[int, Addresses, Addresses]]:
    """Yield groups of which there are blocks: number, blocks, and where each block begins in the region."""
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


_NOTHING: Final = np.empty(0, np.int64)


def single_copies(plan: CopyPlan, region_address: int = 0, piece_bytes: int = 0) -> Copies:
    """Return a plan's copies one by one; neighbours on both sides are one copy.

    No copy crosses the pieces of `piece_bytes` that are page-locked one by one, the first at
    `region_address`; 0 if all of the region is one. No block crosses them.
    """
    before = plan.region_address - region_address
    copies = [
        blocks.copies(
            plan.region_address,
            (blocks.offsets + before) // piece_bytes if piece_bytes else None,
        )
        for blocks in plan.groups
    ]
    if len(copies) == 1:
        return copies[0]
    if not copies:
        return Copies(_NOTHING, _NOTHING, _NOTHING)
    return Copies(
        np.concatenate([each.device for each in copies]),
        np.concatenate([each.region for each in copies]),
        np.concatenate([each.sizes for each in copies]),
    )
