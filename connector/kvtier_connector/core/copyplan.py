"""From block numbers to byte ranges: which bytes of the device belong to which bytes of the region.

A slot of the region holds one chunk: `blocks_per_chunk` engine blocks one after another, each block all its
layers' pages one after another. A chunk is thus one contiguous range, which is what a disk or a network
wants, and an engine whose own layout is block-major (BLHNC) needs one copy per block.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Addresses = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Page:
    """Where one layer's page (or, block-major, the whole block) lies.

    Args:
        device_address: address of block 0's page on the device.
        device_stride_bytes: distance from one block's page to the next block's.
        slot_offset_bytes: where the page lies within a block of the region.
        size_bytes: bytes to copy.
    """

    device_address: int
    device_stride_bytes: int
    slot_offset_bytes: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The engine's blocks and the region's slots.

    Args:
        groups: for each KV cache group, the pages that make up its part of a block.
        blocks_per_chunk: engine blocks in a slot.
        block_bytes: one rank's bytes of a block.
        region_address: address of the rank's slice.
    """

    groups: tuple[tuple[Page, ...], ...]
    blocks_per_chunk: int
    block_bytes: int
    region_address: int


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """Byte ranges to copy; all three arrays have one entry per copy.

    Args:
        device: addresses on the device.
        region: addresses in the region.
        sizes: bytes of each copy.
    """

    device: Addresses
    region: Addresses
    sizes: Addresses

    @property
    def total_bytes(self) -> int:
        """Bytes of all copies."""
        return int(self.sizes.sum())


def plan_copies(
    layout: Layout,
    device_blocks: npt.NDArray[np.int32],
    slots: npt.NDArray[np.int32],
    group_sizes: Sequence[int],
    first_blocks: Sequence[int],
) -> CopyPlan:
    """Return the copies of one transfer.

    Args:
        layout: where everything lies.
        device_blocks: the engine's blocks, group after group.
        slots: the region's slots, group after group.
        group_sizes: how many of `device_blocks` belong to each group.
        first_blocks: position of each group's first block within its request, in blocks: a transfer may start
            or end in the middle of a chunk.

    Raises:
        ValueError: the numbers of blocks and slots do not fit together.
    """
    device: list[Addresses] = []
    region: list[Addresses] = []
    sizes: list[Addresses] = []
    block_at = slot_at = 0
    for pages, count, first in zip(layout.groups, group_sizes, first_blocks, strict=True):
        if count == 0:
            continue
        places = first % layout.blocks_per_chunk + np.arange(count)
        chunks = places // layout.blocks_per_chunk
        used = int(chunks[-1]) + 1
        blocks = device_blocks[block_at : block_at + count].astype(np.uint64)
        of_group = slots[slot_at : slot_at + used].astype(np.uint64)
        if len(blocks) != count or len(of_group) != used:
            raise ValueError(f"{len(device_blocks)} blocks do not fit {len(slots)} slots")
        within = (places % layout.blocks_per_chunk).astype(np.uint64)
        in_region = of_group[chunks] * np.uint64(layout.blocks_per_chunk) + within
        starts = np.uint64(layout.region_address) + in_region * np.uint64(layout.block_bytes)
        for page in pages:
            device.append(np.uint64(page.device_address) + blocks * np.uint64(page.device_stride_bytes))
            region.append(starts + np.uint64(page.slot_offset_bytes))
            sizes.append(np.full(count, page.size_bytes, np.uint64))
        block_at += count
        slot_at += used
    if block_at != len(device_blocks) or slot_at != len(slots):
        raise ValueError(f"{len(device_blocks)} blocks do not fit {len(slots)} slots")
    if not device:
        empty = np.empty(0, np.uint64)
        return CopyPlan(empty, empty, empty)
    return CopyPlan(np.concatenate(device), np.concatenate(region), np.concatenate(sizes))


def coalesce(plan: CopyPlan) -> CopyPlan:
    """Join copies whose ranges follow one another on both sides."""
    if len(plan.sizes) == 0:
        return plan
    follows = (plan.device[1:] == plan.device[:-1] + plan.sizes[:-1]) & (
        plan.region[1:] == plan.region[:-1] + plan.sizes[:-1]
    )
    starts = np.flatnonzero(np.concatenate(([True], ~follows)))
    return CopyPlan(plan.device[starts], plan.region[starts], np.add.reduceat(plan.sizes, starts))


@dataclass(frozen=True, slots=True)
class Run:
    """Copies of one size at even distances, such as one layer's pages of many blocks.

    Args:
        device: address of the first copy on the device.
        device_step: distance to the next; negative where the engine hands out blocks downwards.
        region: address of the first copy in the region.
        region_step: distance to the next.
        size_bytes: bytes of each copy.
        count: number of copies.
    """

    device: int
    device_step: int
    region: int
    region_step: int
    size_bytes: int
    count: int

    def pieces(self, most_bytes: int) -> Iterator["Run"]:
        """Yield the run in parts of at most so many bytes, but of one copy at least."""
        most = max(1, most_bytes // self.size_bytes)
        for first in range(0, self.count, most):
            yield replace(
                self,
                device=self.device + first * self.device_step,
                region=self.region + first * self.region_step,
                count=min(most, self.count - first),
            )


def runs(plan: CopyPlan) -> list[Run]:
    """Group a plan's copies, in their order, into runs."""
    device, region = plan.device.astype(np.int64), plan.region.astype(np.int64)
    resized = np.flatnonzero(plan.sizes[1:] != plan.sizes[:-1]) + 1
    found: list[Run] = []
    for low, high in pairwise([0, *resized.tolist(), len(plan.sizes)]):
        found += _even_runs(device[low:high], region[low:high], plan.sizes[low:high])
    return found


def _even_runs(
    device: npt.NDArray[np.int64], region: npt.NDArray[np.int64], sizes: Addresses
) -> Iterator[Run]:
    """Yield the runs of copies that all have one size."""
    steps = np.stack((np.diff(device), np.diff(region)))
    turns = np.flatnonzero((steps[:, 1:] != steps[:, :-1]).any(axis=0)) + 1
    final = len(sizes) - 1
    start = 0
    for last in [*turns.tolist(), final]:
        if last < start or last == start < final:
            continue  # a single copy may begin the next stretch of even steps
        device_step, region_step = steps[:, start].tolist() if last > start else (0, 0)
        yield Run(
            int(device[start]), device_step, int(region[start]), region_step, int(sizes[0]), last - start + 1
        )
        start = last + 1
