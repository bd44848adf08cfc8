"""How transfers are handed over: some at a time, whatever has become of their memory."""

import pytest

from kvtier_connector.core.disk.flights import lots
from kvtier_connector.core.disk.io.engine import BlockIO


def transfers(*sizes_bytes: int) -> list[BlockIO]:
    return [
        BlockIO(tag, write=False, descriptor=0, offset=0, parts=(memoryview(bytearray(size)),))
        for tag, size in enumerate(sizes_bytes)
    ]


@pytest.mark.parametrize(
    ("sizes_bytes", "expected"),
    [
        ((), []),
        ((1,), [[0]]),
        ((4, 4, 4), [[0, 1], [2]]),
        ((4, 4, 4, 4), [[0, 1], [2, 3]]),
        ((9, 1, 7, 8, 1), [[0], [1, 2, 3], [4]]),
        ((8,) * 9, [[0], [1, 2], [3, 4, 5, 6], [7, 8]]),
    ],
)
def test_a_lot_ends_when_it_has_enough_and_the_next_is_twice_as_large(
    sizes_bytes: tuple[int, ...], expected: list[list[int]]
) -> None:
    found = lots(iter(transfers(*sizes_bytes)), 8)
    assert [[io.tag for io in lot] for lot in found] == expected


def test_a_transfer_whose_memory_was_released_is_handed_over_with_the_others() -> None:
    ios = transfers(4, 4, 4)
    ios[1].parts[0].release()
    assert list(lots(ios, 8)) == [ios]
