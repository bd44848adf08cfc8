"""What waits for the disk, and which blocks one transfer moves together."""

from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.connector.disk.rig.tier_files import directory

from kvtier_connector.core.behind.messages import Order
from kvtier_connector.core.disk.files.segments import Segments
from kvtier_connector.core.disk.transfers.orders import OrderQueue, take_run

BLOCK = 4096


@pytest.fixture
def segments(tmp_path: Path) -> Iterator[Segments]:
    """Four slots a file."""
    with directory(tmp_path) as folder:
        opened = Segments.open(folder, slot_bytes=BLOCK, slots=8, direct=False, segment_bytes=4 * BLOCK)
    yield opened
    opened.close()


def an_order(slot: int, *, pieces: int = 1, part_ends: tuple[int, ...] = ()) -> Order:
    memory = memoryview(bytearray(1))
    return Order(
        write=False,
        generation=1,
        key=b"",
        slot=slot,
        memory_slot=0,
        memory=(memory,) * pieces,
        part_ends=part_ends,
    )


def runs_of(waiting: list[Order], segments: Segments, most_bytes: int) -> list[list[int]]:
    queue = deque(waiting)
    runs = list[list[int]]()
    while queue:
        runs.append([order.slot for order in take_run(queue, segments, most_bytes)])
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
    waiting = [an_order(0), an_order(1, part_ends=(10, 20)), an_order(2), an_order(3)]
    assert runs_of(waiting, segments, 8 * BLOCK) == [[0], [1], [2, 3]]


def test_a_transfer_has_no_more_parts_than_the_kernel_takes(segments: Segments) -> None:
    waiting = [an_order(slot, pieces=400) for slot in range(3)]
    assert runs_of(waiting, segments, 8 * BLOCK) == [[0, 1], [2]]


def test_what_is_put_back_is_next_and_in_its_order(segments: Segments) -> None:
    queue = OrderQueue()
    for slot in (0, 1, 2, 5):
        queue.add(an_order(slot))
    run = take_run(queue.reads, segments, 8 * BLOCK)
    queue.put_back(run[1:])
    assert queue.has_reads
    assert [order.slot for order in queue.take_all()] == [1, 2, 5]
    assert not queue.has_reads
