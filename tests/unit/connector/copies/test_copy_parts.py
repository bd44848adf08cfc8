"""Loads in parts: together they are the load, in the order of the layers, whatever the engine's layout."""

from dataclasses import replace

import numpy as np
import pytest

from kvtier_connector.core.copies.copyplan import CopyPlan, Layout, Page, plan_copies
from kvtier_connector.core.copies.layer_parts import CopyPart, LayerPlace, copy_parts

PAGE = 1000
LAYERS = 12


def apart(layers: int = LAYERS, blocks_per_chunk: int = 4) -> Layout:
    """Layers whose pages are far from each other on the device."""
    pages = tuple(Page((layer + 1) << 30, PAGE, layer * PAGE, PAGE) for layer in range(layers))
    return Layout((pages,), blocks_per_chunk, layers * PAGE, 1 << 40)


def together(layers: int = LAYERS) -> Layout:
    """A block with the pages of all layers."""
    size = layers * PAGE
    return Layout(((Page(1 << 30, size, 0, size),),), 4, size, 1 << 40)


def places(layers: int = LAYERS) -> list[LayerPlace]:
    return [LayerPlace(layer * PAGE, PAGE) for layer in range(layers)]


ASKED = np.array([3, 4, 9, 2, 7], np.int32), np.array([7, 1], np.int32), [5], [0]


def copied(plan: CopyPlan) -> set[tuple[int, int]]:
    """Every byte that a plan copies: its place in the region and on the device."""
    return {
        (run.region + nth * run.region_step + at, run.device + nth * run.device_step + at)
        for run in plan.runs
        for nth in range(run.count)
        for at in range(run.size_bytes)
    }


@pytest.mark.parametrize("layout", [apart(), together()], ids=["apart", "together"])
def test_all_parts_together_are_the_load(layout: Layout) -> None:
    parts = [copied(plan_copies(part.layout, *ASKED)) for part in copy_parts(layout, places())]
    assert sum(map(len, parts)) == len(set().union(*parts))
    assert set().union(*parts) == copied(plan_copies(layout, *ASKED))


@pytest.mark.parametrize("layout", [apart(), together()], ids=["apart", "together"])
def test_a_part_has_its_own_layers(layout: Layout) -> None:
    parts = copy_parts(layout, places())
    assert [part.last_layer for part in parts] == [1, 3, 5, 7, 9, 11]
    first = 0
    for part in parts:
        (pages,) = part.layout.groups
        assert sum(page.size_bytes for page in pages) == (part.last_layer + 1 - first) * PAGE
        assert min(page.slot_offset_bytes for page in pages) == first * PAGE
        first = part.last_layer + 1


def test_pages_that_lie_together_are_one_copy_of_a_block() -> None:
    assert all(len(part.layout.groups[0]) == 1 for part in copy_parts(together(), places()))


def test_layers_in_another_order_than_their_pages() -> None:
    turned = places()[::-1]
    parts = copy_parts(together(), turned)
    assert [_begins(part) for part in parts] == [10 * PAGE, 8 * PAGE, 6 * PAGE, 4 * PAGE, 2 * PAGE, 0]


def _begins(part: CopyPart) -> int:
    (page,) = part.layout.groups[0]
    return page.slot_offset_bytes


def test_numbers_of_layers_that_cannot_be_divided() -> None:
    parts = copy_parts(apart(13), places(13))
    assert [part.last_layer for part in parts] == [1, 3, 5, 8, 10, 12]


@pytest.mark.parametrize(
    ("layout", "layers"),
    [
        (apart(5), places(5)),  # too few for parts
        (replace(apart(), groups=apart().groups * 2), places()),
        (together(), []),
        (together(), places(LAYERS + 1)),  # pages that are not there
        (
            together(),
            [LayerPlace(layer * PAGE // 4, PAGE) for layer in range(LAYERS)],
        ),  # four heads before layers
    ],
)
def test_others_are_copied_as_a_whole(layout: Layout, layers: list[LayerPlace]) -> None:
    assert copy_parts(layout, layers) == ()
