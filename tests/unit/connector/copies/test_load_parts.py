"""Loads in parts: together they are the load, in the order of the layers, whatever the engine's layout."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_connector.core.copies.copyplan import Copies, Layout, Page, plan_copies, plan_parts, single_copies
from kvtier_connector.core.copies.load_parts import (
    LayerPlace,
    count_parts,
    load_bytes,
    load_parts,
)
from kvtier_connector.core.index.keytable import Slots

PAGE = 24
LAYERS = 12


def apart(layers: int = LAYERS, page_bytes: int = PAGE, blocks_per_chunk: int = 4) -> Layout:
    """Layers whose pages are far from each other on the device."""
    pages = tuple(
        Page((layer + 1) << 30, page_bytes, layer * page_bytes, page_bytes) for layer in range(layers)
    )
    return Layout((pages,), blocks_per_chunk, layers * page_bytes, 1 << 40)


def together(layers: int = LAYERS, page_bytes: int = PAGE) -> Layout:
    """A block with the pages of all layers."""
    size = layers * page_bytes
    return Layout(((Page(1 << 30, size, 0, size),),), 4, size, 1 << 40)


def hybrid() -> Layout:
    """Two groups that take turns in the same memory, as vLLM overlays a window's layers and the others."""
    (pages,) = apart(LAYERS // 2).groups
    return Layout((pages, pages), 4, LAYERS // 2 * PAGE, 1 << 40)


def places(layers: int = LAYERS, group: int = 0) -> list[LayerPlace]:
    return [LayerPlace(group, layer * PAGE, PAGE) for layer in range(layers)]


BLOCKS = np.array([3, 4, 9, 2, 7], np.int32)


def asked(layout: Layout) -> tuple[Slots, Slots, list[int], list[int]]:
    """Five blocks of the first group, in the middle of a chunk, and three of the second."""
    more = len(layout.groups) - 1
    blocks = np.concatenate([BLOCKS, *[BLOCKS[:3] + 20] * more])
    slots = np.array([7, 1, *[4] * more], np.int32)
    return blocks, slots, [5, *[3] * more], [2, *[4] * more]


def copied(copies: Copies) -> set[tuple[int, int]]:
    """Every byte that is copied: its place in the region and on the device."""
    rows = zip(copies.region.tolist(), copies.device.tolist(), copies.sizes.tolist(), strict=True)
    return {(region + at, device + at) for region, device, size in rows for at in range(size)}


@given(
    layout=st.sampled_from([apart(), together(), hybrid()]),
    count=st.integers(1, LAYERS + 2),
    data=st.data(),
)
def test_parts_are_the_load_and_each_layer_waits_for_its_own(
    layout: Layout, count: int, data: st.DataObject
) -> None:
    known = [
        place for group in range(len(layout.groups)) for place in places(LAYERS // len(layout.groups), group)
    ]
    layers = data.draw(st.permutations(known))[: data.draw(st.integers(0, len(known)))]
    parts = load_parts(layout, layers, count)
    lists = [single_copies(plan) for plan in plan_parts(parts.layouts, *asked(layout))]
    found = [copied(copies) for copies in lists]
    assert sum(map(len, found)) == len(set().union(*found)), "something is copied twice"
    whole = copied(single_copies(plan_copies(layout, *asked(layout))))
    assert set().union(*found) == whole
    assert load_bytes(layout, asked(layout)[2]) == sum(int(copies.sizes.sum()) for copies in lists)

    assert len(parts.waits) == len(layers)
    assert list(parts.waits) == sorted(parts.waits)
    assert len(parts.layouts) - parts.before_step <= count
    asked_for = set[tuple[int, int]]()
    for layer, wait in zip(layers, parts.waits, strict=True):
        (alone,) = plan_parts([load_parts(layout, [layer], 1).layouts[-1]], *asked(layout))
        own = copied(single_copies(alone))
        assert own <= set().union(*found[:wait]), "a layer begins before it is there"
        asked_for |= own
    assert whole - asked_for <= set().union(*found[: parts.before_step]), "what nobody asks for comes late"


def test_parts_have_about_as_many_bytes() -> None:
    parts = load_parts(together(), places(), 6)
    sizes = [sum(page.size_bytes for page in layout.groups[0]) for layout in parts.layouts]
    assert sizes == [2 * PAGE] * 6
    assert parts.before_step == 0
    assert parts.waits == (1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6)
    assert load_parts(apart(13), places(13), 6).waits[-1] == 6


def test_pages_that_lie_together_are_one_copy_of_a_block() -> None:
    assert all(len(layout.groups[0]) == 1 for layout in load_parts(together(), places(), 6).layouts)


KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@pytest.mark.parametrize(
    ("layout", "size_bytes", "count"),
    [
        (together(36, 64 * KIB), 2 * GIB, 6),  # Qwen3-8B's block of 2.25 MiB
        (together(36, 16 * KIB), GIB, 3),  # four ranks
        (together(1, 64 * KIB), GIB, 1),
        (apart(36, 64 * KIB), 2 * GIB, 8),  # as many copies anyhow
        (together(36, 64 * KIB), 40 * MIB, 2),
        (together(36, 64 * KIB), MIB, 1),
    ],
)
def test_how_many_parts_a_load_has(layout: Layout, size_bytes: int, count: int) -> None:
    assert count_parts(layout, size_bytes) == count


def test_more_bytes_have_no_fewer_parts() -> None:
    counts = [count_parts(together(36, 64 * KIB), size << 20) for size in range(1, 400, 7)]
    assert all(fewer <= more for fewer, more in pairwise(counts))


def test_numbers_that_do_not_match_are_refused() -> None:
    blocks, slots, sizes, firsts = asked(apart())
    with pytest.raises(ValueError, match="do not fit"):
        plan_parts(load_parts(apart(), places(), 3).layouts, blocks[:-1], slots, sizes, firsts)
