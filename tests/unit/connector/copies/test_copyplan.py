import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_connector.core.copies.copyplan import CopyPlan, Layout, Page, Run, plan_copies, single_copies

DEVICE, REGION = 1_000_000, 9_000_000


def triples(plan: CopyPlan) -> list[tuple[int, int, int]]:
    copies = single_copies(plan)
    return list(zip(copies.device.tolist(), copies.region.tolist(), copies.sizes.tolist(), strict=True))


def blocks(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array(numbers, np.int32)


def test_two_layers_of_one_block_lie_behind_one_another_in_the_slot() -> None:
    layout = Layout(((Page(DEVICE, 100, 0, 100), Page(DEVICE + 5000, 100, 100, 90)),), 1, 200, REGION)
    plan = plan_copies(layout, blocks(7), blocks(3), [1], [0])
    assert triples(plan) == [(DEVICE + 700, REGION + 600, 100), (DEVICE + 5700, REGION + 700, 90)]
    assert plan.total_bytes == 190


def test_a_transfer_may_begin_and_end_in_the_middle_of_a_chunk() -> None:
    layout = Layout(((Page(DEVICE, 10, 0, 10),),), 4, 10, REGION)
    plan = plan_copies(layout, blocks(50, 51, 52, 53), blocks(8, 2), [4], [6])
    assert triples(plan) == [(DEVICE + 500, REGION + 340, 20), (DEVICE + 520, REGION + 80, 20)]


def test_no_copy_goes_across_two_pieces_that_are_page_locked_one_by_one() -> None:
    layout = Layout(((Page(DEVICE, 10, 0, 10),),), 1, 10, REGION)
    plan = plan_copies(layout, blocks(1, 2, 3, 4), blocks(2, 3, 4, 5), [4], [0])
    assert single_copies(plan, REGION, 60).sizes.tolist() == [40]
    assert single_copies(plan, REGION, 40).sizes.tolist() == [20, 20]


def test_each_group_has_its_own_pages_and_slots() -> None:
    layout = Layout(((Page(DEVICE, 10, 0, 10),), (Page(DEVICE + 500, 10, 10, 10),)), 1, 20, REGION)
    plan = plan_copies(layout, blocks(1, 2, 3), blocks(0, 1, 2), [2, 1], [0, 40])
    assert triples(plan) == [
        (DEVICE + 10, REGION, 10),
        (DEVICE + 20, REGION + 20, 10),
        (DEVICE + 530, REGION + 50, 10),
    ]


def test_nothing_to_copy() -> None:
    layout = Layout(((Page(DEVICE, 10, 0, 10),),), 1, 10, REGION)
    assert triples(plan_copies(layout, blocks(), blocks(), [0], [0])) == []


@pytest.mark.parametrize(("slots", "sizes"), [((0,), [2]), ((0, 1, 2), [2]), ((0, 1), [1])])
def test_blocks_that_do_not_fit_the_slots_are_refused(slots: tuple[int, ...], sizes: list[int]) -> None:
    layout = Layout(((Page(DEVICE, 10, 0, 10),),), 1, 10, REGION)
    with pytest.raises(ValueError, match="do not fit"):
        plan_copies(layout, blocks(1, 2), blocks(*slots), sizes, [0])


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=30, unique=True),
    st.integers(1, 4),
    st.integers(0, 9),
    st.integers(0, 1),
    st.data(),
)
def test_runs_move_every_byte_of_every_page_to_its_place(
    numbers: list[int], chunk: int, first: int, gap: int, data: st.DataObject
) -> None:
    first %= chunk
    slot_count = -(-(first + len(numbers)) // chunk)
    slots = data.draw(st.lists(st.integers(0, 40), min_size=slot_count, max_size=slot_count, unique=True))
    pages = (Page(DEVICE, 2 + gap, 0, 2), Page(DEVICE + 500, 3, 2, 3))
    plan = plan_copies(
        Layout((pages,), chunk, 5, REGION), blocks(*numbers), blocks(*slots), [len(numbers)], [first]
    )
    moved = [(device + i, region + i) for device, region, size in triples(plan) for i in range(size)]
    wanted = [
        (
            page.device_address + number * page.device_stride_bytes + i,
            REGION + (slots[place // chunk] * chunk + place % chunk) * 5 + page.slot_offset_bytes + i,
        )
        for place, number in enumerate(numbers, start=first)
        for page in pages
        for i in range(page.size_bytes)
    ]
    assert sorted(moved) == sorted(wanted)
    assert plan.total_bytes == len(wanted)


def test_neighbours_on_both_sides_become_one_copy() -> None:
    layout = Layout(((Page(DEVICE, 10, 0, 10),),), 1, 10, REGION)
    plan = plan_copies(layout, blocks(4, 5, 6, 9), blocks(1, 2, 3, 4), [4], [0])
    assert triples(plan) == [(DEVICE + 40, REGION + 10, 30), (DEVICE + 90, REGION + 40, 10)]


def test_a_large_run_is_shared_piece_by_piece() -> None:
    run = Run(DEVICE, -10, REGION, 20, 10, 7)
    assert [(piece.device, piece.region, piece.count) for piece in run.pieces(35)] == [
        (DEVICE, REGION, 3),
        (DEVICE - 30, REGION + 60, 3),
        (DEVICE - 60, REGION + 120, 1),
    ]
    assert list(run.pieces(70)) == [run]
