"""Which blocks can be read layer by layer, and in which parts."""

from dataclasses import replace

import numpy as np
import pytest

from kvtier_connector.core.copies.copyplan import Layout, Page, plan_copies
from kvtier_connector.core.copies.layer_parts import layer_parts

PAGE = 8192


def layout(layers: int, page: int = PAGE) -> Layout:
    pages = tuple(Page((layer + 1) << 30, page, layer * page, page) for layer in range(layers))
    return Layout((pages,), 1, layers * page, 1 << 40)


@pytest.mark.parametrize(
    ("layers", "ends"),
    [(2, [1, 2]), (4, [1, 4]), (6, [1, 2, 6]), (8, [1, 3, 8]), (9, [1, 3, 9]), (32, [4, 12, 32])],
)
def test_an_eighth_of_the_layers_comes_first_and_a_quarter_next(layers: int, ends: list[int]) -> None:
    parts = layer_parts(layout(layers))
    assert [part.last_layer + 1 for part in parts] == ends
    assert [part.end_bytes for part in parts] == [end * PAGE for end in ends]


def test_all_parts_together_are_the_block() -> None:
    whole = layout(8)
    asked = (np.array([3, 4, 9], np.int32), np.array([7, 1, 2], np.int32), [3], [0])
    plans = [plan_copies(part.layout, *asked) for part in layer_parts(whole)]
    runs = [run for plan in plans for run in plan.runs]
    assert sorted(map(str, runs)) == sorted(map(str, plan_copies(whole, *asked).runs))
    assert [plan.total_bytes for plan in plans] == [3 * PAGE, 3 * 2 * PAGE, 3 * 5 * PAGE]


@pytest.mark.parametrize(
    "other",
    [
        replace(layout(8), blocks_per_chunk=2),
        replace(layout(8), groups=layout(8).groups * 2),
        layout(1),
        layout(8, 2048),  # a part does not end where a disk reads
        replace(layout(8), groups=(layout(8).groups[0][::-1],)),  # the first layers do not come first
    ],
)
def test_others_come_as_a_whole(other: Layout) -> None:
    assert layer_parts(other) == ()


def test_the_last_part_may_end_anywhere() -> None:
    pages = (*layout(1).groups[0], Page(1 << 35, 100, PAGE, 100))
    parts = layer_parts(Layout((pages,), 1, PAGE + 100, 1 << 40))
    assert [part.end_bytes for part in parts] == [PAGE, PAGE + 100]
