"""How transfers are handed over: few at first, then more at a time."""

from collections.abc import Iterator
from itertools import islice

import pytest

from kvtier_connector.core.disk.flights import lots
from kvtier_connector.core.disk.io.engine import BlockIO


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
