"""The parts of a block, some layers each: a step computes with the first while others are read from disk."""

from dataclasses import dataclass, replace
from typing import Final

from kvtier_connector.config import DISK_ALIGNMENT_BYTES
from kvtier_connector.core.copies.copyplan import Layout

_ENDS: Final = (1 / 8, 3 / 8, 1)
"""Of the layers. Each part is read while the one before it computes; the last has most, because a disk reads
faster than a step computes, and few large transfers take less of the cores than many small ones."""


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
