"""The parts of a load to a GPU, some layers each: a step computes with the first while others are copied."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import sqrt
from typing import Final

import numpy as np

from kvtier_connector.core.copies.copyplan import Layout, Page

_COPY_COST_BYTES: Final = 64 << 10
"""What a copy costs beside its bytes, in bytes: an H200 copied 128 KiB at 0.60 to 0.84 of its bandwidth,
2 MiB at 0.95."""
_MOST_PARTS: Final = 8
_LEAST_PART_BYTES: Final = 16 << 20
"""Of a load: some 0.3 ms of copying, which is what the host needs to queue a part."""


@dataclass(frozen=True, slots=True)
class LayerPlace:
    """Where a layer's bytes lie in a block of its KV cache group."""

    group: int
    offset_bytes: int
    size_bytes: int

    @property
    def end_bytes(self) -> int:
        """Where they end."""
        return self.offset_bytes + self.size_bytes


@dataclass(frozen=True, slots=True)
class LoadParts:
    """A layout in parts, in the order in which a step needs them."""

    layouts: tuple[Layout, ...]
    waits: tuple[int, ...]
    """For each layer, how many parts have to be there before it computes."""
    before_step: int
    """How many have to be there before the step: those with what no layer asks for."""


def load_bytes(layout: Layout, group_sizes: Sequence[int]) -> int:
    """Return the bytes of a load of so many blocks of each KV cache group."""
    groups = zip(layout.groups, group_sizes, strict=True)
    return sum(count * sum(page.size_bytes for page in pages) for pages, count in groups)


def count_parts(layout: Layout, load_bytes: int) -> int:
    """Return in how many parts a load is best copied.

    What is computed after the last of n parts is an nth of the step, but a block is n copies, unless it is as
    many anyhow. Where a step takes about as long as its load, as on an H200, sqrt(bytes of a block / cost of
    a copy) parts are best.
    """
    block_bytes = max(sum(page.size_bytes for page in pages) for pages in layout.groups)
    anyhow = sum(len(pages) for pages in layout.groups)
    best = max(round(sqrt(block_bytes / _COPY_COST_BYTES)), anyhow)
    return max(1, min(best, load_bytes // _LEAST_PART_BYTES, _MOST_PARTS))


def load_parts(layout: Layout, layers: Sequence[LayerPlace], count: int) -> LoadParts:
    """Cut a layout into parts of about as many bytes.

    Args:
        layout: of all that a load copies.
        layers: those that ask for their part before they compute, in the order in which they do. What lies
            elsewhere comes first, and has to be there before the step.
        count: of the layers' parts, at most.
    """
    rest = replace(
        layout,
        groups=tuple(
            tuple(_without(pages, [layer for layer in layers if layer.group == group]))
            for group, pages in enumerate(layout.groups)
        ),
    )
    layouts, waits = [rest] if any(rest.groups) else [], list[int]()
    before_step = len(layouts)
    for first, last in pairwise(_ends(layers, count)):
        layouts.append(_cut(layout, layers[first:last]))
        waits += [len(layouts)] * (last - first)
    return LoadParts(tuple(layouts), tuple(waits), before_step)


def _ends(layers: Sequence[LayerPlace], count: int) -> list[int]:
    """Return where parts begin and end, as places in a row of layers."""
    ends = np.cumsum([layer.size_bytes for layer in layers])
    if not layers:
        return [0]
    wanted = ends[-1] * np.arange(1, count + 1) / count
    return sorted({0, *(np.searchsorted(ends, wanted - 0.5) + 1).tolist()})


def _cut(layout: Layout, layers: Sequence[LayerPlace]) -> Layout:
    groups = [
        tuple(
            piece
            for begin, end in _ranges([layer for layer in layers if layer.group == group])
            for piece in _between(pages, begin, end)
        )
        for group, pages in enumerate(layout.groups)
    ]
    return replace(layout, groups=tuple(groups))


def _ranges(layers: Sequence[LayerPlace]) -> Iterator[tuple[int, int]]:
    """Yield begin and end of what lies together."""
    begin = end = -1
    for layer in sorted(layers, key=lambda layer: layer.offset_bytes):
        if layer.offset_bytes != end:
            if end > begin:
                yield begin, end
            begin = layer.offset_bytes
        end = layer.end_bytes
    if end > begin:
        yield begin, end


def _without(pages: Sequence[Page], layers: Sequence[LayerPlace]) -> Iterator[Page]:
    """Yield what of the pages lies outside some layers."""
    for page in pages:
        begin, page_end = page.slot_offset_bytes, page.slot_offset_bytes + page.size_bytes
        for first, end in _ranges(layers):
            if first < page_end and end > begin:
                yield from _between([page], begin, first)
                begin = end
        yield from _between([page], begin, page_end)


def _between(pages: Sequence[Page], begin: int, end: int) -> Iterator[Page]:
    """Yield what of the pages lies between two places of a block."""
    for page in pages:
        first = max(begin, page.slot_offset_bytes)
        last = min(end, page.slot_offset_bytes + page.size_bytes)
        if first < last:
            shift = first - page.slot_offset_bytes
            yield Page(page.device_address + shift, page.device_stride_bytes, first, last - first)
