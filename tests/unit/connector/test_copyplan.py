import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_connector.core.copyplan import CopyPlan, Layout, Page, coalesce, plan_copies

DEVICE, REGION = 1_000_000, 9_000_000


def triples(plan: CopyPlan) -> list[tuple[int, int, int]]:
    return list(zip(plan.device.tolist(), plan.region.tolist(), plan.sizes.tolist(), strict=True))


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
    within = [8 * 40 + 20, 8 * 40 + 30, 2 * 40, 2 * 40 + 10]
    assert triples(plan) == [
        (DEVICE + 10 * block, REGION + at, 10) for block, at in zip((50, 51, 52, 53), within, strict=True)
    ]


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
    assert triples(coalesce(plan_copies(layout, blocks(), blocks(), [0], [0]))) == []


@pytest.mark.parametrize(("slots", "sizes"), [((0,), [2]), ((0, 1, 2), [2]), ((0, 1), [1])])
def test_blocks_that_do_not_fit_the_slots_are_refused(slots: tuple[int, ...], sizes: list[int]) -> None:
    layout = Layout(((Page(DEVICE, 10, 0, 10),),), 1, 10, REGION)
    with pytest.raises(ValueError, match="do not fit"):
        plan_copies(layout, blocks(1, 2), blocks(*slots), sizes, [0])


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=30, unique=True),
    st.integers(1, 4),
    st.integers(0, 9),
    st.data(),
)
def test_coalescing_moves_the_same_bytes(
    numbers: list[int], chunk: int, first: int, data: st.DataObject
) -> None:
    slot_count = -(-(first % chunk + len(numbers)) // chunk)
    slots = data.draw(st.lists(st.integers(0, 40), min_size=slot_count, max_size=slot_count, unique=True))
    layout = Layout(((Page(DEVICE, 2, 0, 2),),), chunk, 2, REGION)
    plan = plan_copies(layout, blocks(*numbers), blocks(*slots), [len(numbers)], [first])

    def moved(plan: CopyPlan) -> set[tuple[int, int]]:
        return {(device + i, region + i) for device, region, size in triples(plan) for i in range(size)}

    assert moved(coalesce(plan)) == moved(plan)
    assert len(moved(plan)) == 2 * len(numbers)


def test_neighbours_on_both_sides_become_one_copy() -> None:
    layout = Layout(((Page(DEVICE, 10, 0, 10),),), 1, 10, REGION)
    plan = coalesce(plan_copies(layout, blocks(4, 5, 6, 9), blocks(1, 2, 3, 4), [4], [0]))
    assert triples(plan) == [(DEVICE + 40, REGION + 10, 30), (DEVICE + 90, REGION + 40, 10)]
