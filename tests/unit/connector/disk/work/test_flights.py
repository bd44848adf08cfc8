"""How transfers are handed over: few at first, then more at a time; and which blocks one of them moves."""

from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from tests.unit.connector.disk.rig import directory

from kvtier_connector.core.disk.files.segments import Segments
from kvtier_connector.core.disk.io.engine import BlockIO
from kvtier_connector.core.disk.work.flights import lots, next_run
from kvtier_connector.core.disk.work.orders import Order

BLOCK = 4096


def transfers(count: int, made: list[int]) -> Iterator[BlockIO]:
    for tag in range(count):
        made.append(tag)
        yield BlockIO(tag, write=False, descriptor=0, offset=0, parts=())


@pytest.mark.parametrize(
    ("count", "first", "expected"),
    [
        (0, 2, []),
        (1, 2, [1]),
        (2, 2, [2]),
        (7, 2, [2, 4, 1]),
        (31, 1, [1, 2, 4, 8, 16]),
    ],
)
def test_a_lot_is_twice_as_large_as_that_before_it(count: int, first: int, expected: list[int]) -> None:
    found = list(lots(transfers(count, []), first))
    assert [len(lot) for lot in found] == expected
    assert [io.tag for lot in found for io in lot] == list(range(count))


def test_what_comes_later_is_made_later() -> None:
    made = list[int]()
    (first,) = islice(lots(transfers(9, made), 3), 1)
    assert len(first) == len(made) == 3


def test_a_transfer_whose_memory_was_released_is_handed_over_with_the_others() -> None:
    memories = [memoryview(bytearray(4)) for _ in range(3)]
    ios = [
        BlockIO(tag, write=False, descriptor=0, offset=0, parts=(memory,))
        for tag, memory in enumerate(memories)
    ]
    memories[1].release()
    assert list(lots(iter(ios), 3)) == [ios]


@pytest.fixture
def segments(tmp_path: Path) -> Iterator[Segments]:
    """Four slots a file."""
    with directory(tmp_path) as folder:
        opened = Segments.open(folder, slot_bytes=BLOCK, slots=8, direct=False, segment_bytes=4 * BLOCK)
    yield opened
    opened.close()


def an_order(slot: int, *, parts: int = 1, ends: tuple[int, ...] = ()) -> Order:
    memory = memoryview(bytearray(1))
    return Order(
        write=False,
        generation=1,
        key=b"",
        slot=slot,
        memory_slot=0,
        parts=(memory,) * parts,
        ends=ends,
    )


def runs_of(waiting: list[Order], segments: Segments, most_bytes: int) -> list[list[int]]:
    queue = deque(waiting)
    runs = list[list[int]]()
    while queue:
        runs.append([order.slot for order in next_run(queue, segments, most_bytes)])
    return runs


@pytest.mark.parametrize(
    ("slots", "most_blocks", "expected"),
    [
        ([0, 1, 2], 8, [[0, 1, 2]]),
        ([0, 1, 2, 3], 3, [[0, 1, 2], [3]]),
        ([0, 1, 2], 0, [[0], [1], [2]]),
        ([0, 2, 3], 8, [[0], [2, 3]]),
        ([1, 0, 1], 8, [[1], [0, 1]]),
        ([2, 2], 8, [[2], [2]]),
        ([2, 3, 4, 5], 8, [[2, 3], [4, 5]]),  # the fifth slot is another file's first
    ],
)
def test_neighbours_are_taken_together(
    segments: Segments, slots: list[int], most_blocks: int, expected: list[list[int]]
) -> None:
    assert runs_of([an_order(slot) for slot in slots], segments, most_blocks * BLOCK) == expected


def test_what_is_read_in_parts_is_taken_alone(segments: Segments) -> None:
    waiting = [an_order(0), an_order(1, ends=(10, 20)), an_order(2), an_order(3)]
    assert runs_of(waiting, segments, 8 * BLOCK) == [[0], [1], [2, 3]]


def test_a_transfer_has_no_more_parts_than_the_kernel_takes(segments: Segments) -> None:
    waiting = [an_order(slot, parts=400) for slot in range(3)]
    assert runs_of(waiting, segments, 8 * BLOCK) == [[0, 1], [2]]
