"""The parts of a block, some layers each: a step computes with the first while others are read or copied."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from kvtier_connector.config import DISK_ALIGNMENT_BYTES
from kvtier_connector.core.copies.copyplan import Layout, Page

_ENDS: Final = (1 / 8, 3 / 8, 1)
"""Of the layers. Each part is read while the one before it computes; the last has most, because a disk reads
faster than a step computes, and few large transfers take less of the cores than many small ones."""
_PARTS: Final = 6
"""What comes after the last part is copied is its layers' computing: a sixth of a step. More parts make
single copies so small that a GPU's bandwidth suffers: of Qwen3-8B's block of 2.25 MiB, 384 KiB each."""


@dataclass(frozen=True, slots=True)
class LayerPart:
    """Some layers of a block that is read from disk."""

    last_layer: int  # the last of them, counted from 0
    end_bytes: int  # where their part of a slot ends; it begins where the one before it does
    layout: Layout  # the layers' pages


def layer_parts(layout: Layout) -> tuple[LayerPart, ...]:
    """Return the parts of a layout's slots, in order; none if they cannot be parted.

    A slot has to begin with the first layers of all its tokens, that is, hold one block, and a disk has to be
    able to read each part by itself.
    """
    if len(layout.groups) != 1 or layout.blocks_per_chunk != 1:
        return ()
    (pages,) = layout.groups
    parts = list[LayerPart]()
    first = end_bytes = 0
    for last in sorted({max(1, int(end * len(pages))) for end in _ENDS}):
        part = pages[first:last]
        end_bytes += sum(page.size_bytes for page in part)
        if max(page.slot_offset_bytes + page.size_bytes for page in part) != end_bytes:
            return ()
        if end_bytes % DISK_ALIGNMENT_BYTES and last < len(pages):
            return ()
        parts.append(LayerPart(last - 1, end_bytes, replace(layout, groups=(part,))))
        first = last
    return tuple(parts) if len(parts) > 1 else ()


@dataclass(frozen=True, slots=True)
class LayerPlace:
    """Where a layer's page lies in a block of the region."""

    offset_bytes: int
    size_bytes: int

    @property
    def end_bytes(self) -> int:
        """Where the page ends."""
        return self.offset_bytes + self.size_bytes


@dataclass(frozen=True, slots=True)
class CopyPart:
    """Some layers of a load to a GPU, whose layers wait for their part one by one."""

    last_layer: int
    layout: Layout


def copy_parts(layout: Layout, layers: Sequence[LayerPlace]) -> tuple[CopyPart, ...]:
    """Return the parts of a layout, in the order in which a step needs them; none if it cannot be parted.

    The layout is of one KV cache group: a page for each layer, or for all layers of a block together. The
    layers come in the order in which a step computes them.
    """
    if len(layout.groups) != 1 or len(layers) < _PARTS:
        return ()
    (pages,) = layout.groups
    if sum(page.size_bytes for page in pages) < sum(layer.size_bytes for layer in layers):
        return ()
    ordered = sorted(layers, key=lambda layer: layer.offset_bytes)
    if any(before.end_bytes > after.offset_bytes for before, after in pairwise(ordered)):
        return ()  # a layer's bytes do not lie together: heads come before layers
    parts = list[CopyPart]()
    for first, last in pairwise(round(part * len(layers) / _PARTS) for part in range(_PARTS + 1)):
        cut = tuple(piece for begin, end in _ranges(layers[first:last]) for piece in _cut(pages, begin, end))
        parts.append(CopyPart(last - 1, replace(layout, groups=(cut,))))
    return tuple(parts)


def _ranges(layers: Sequence[LayerPlace]) -> Iterator[tuple[int, int]]:
    """Yield begin and end of what lies together."""
    ordered = sorted(layers, key=lambda layer: layer.offset_bytes)
    begin, end = ordered[0].offset_bytes, ordered[0].end_bytes
    for layer in ordered[1:]:
        if layer.offset_bytes != end:
            yield begin, end
            begin = layer.offset_bytes
        end = layer.end_bytes
    yield begin, end


def _cut(pages: Sequence[Page], begin: int, end: int) -> Iterator[Page]:
    """Yield what of the pages lies between two places of a block."""
    for page in pages:
        first = max(begin, page.slot_offset_bytes)
        last = min(end, page.slot_offset_bytes + page.size_bytes)
        if first < last:
            shift = first - page.slot_offset_bytes
            yield Page(page.device_address + shift, page.device_stride_bytes, first, last - first)
