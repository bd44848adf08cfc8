"""What follows a transfer that has ended."""

from itertools import product

import pytest

from kvtier_connector.core.behind.messages import Order
from kvtier_connector.core.disk.transfers.completion import AfterTransfer, after_transfer
from kvtier_connector.core.disk.transfers.orders import Transfer

BOOLS = (False, True)


def transfer(blocks: int = 1, part: int = 0, parts: int = 0) -> Transfer:
    """The transfer of so many whole blocks, or of a part of one."""
    order = Order(
        write=False,
        generation=1,
        key=b"",
        slot=0,
        memory_slot=0,
        memory=(),
        part_ends=tuple(range(1, parts + 1)),
    )
    return Transfer((order,) * blocks, (0,) * blocks, part)


@pytest.mark.parametrize(
    ("ended", "has_failed", "is_wanted", "expected"),
    [
        (transfer(), False, True, AfterTransfer.END),
        (transfer(), True, True, AfterTransfer.END),
        (transfer(), False, False, AfterTransfer.END),
        (transfer(blocks=2), False, True, AfterTransfer.END),
        (transfer(blocks=2), True, True, AfterTransfer.APART),
        (transfer(blocks=2), True, False, AfterTransfer.END),
        (transfer(part=0, parts=2), False, True, AfterTransfer.NEXT_PART),
        (transfer(part=0, parts=2), True, True, AfterTransfer.END),
        (transfer(part=0, parts=2), False, False, AfterTransfer.END),
        (transfer(part=1, parts=2), False, True, AfterTransfer.END),
    ],
)
def test_what_follows(ended: Transfer, expected: AfterTransfer, *, has_failed: bool, is_wanted: bool) -> None:
    found = after_transfer(ended, has_failed=has_failed, is_wanted=is_wanted, is_checked_by_worker=False)
    assert found is expected


@pytest.mark.parametrize(("has_failed", "is_wanted"), list(product(BOOLS, BOOLS)))
def test_a_worker_gets_what_is_whole_and_wanted_and_nothing_else(
    *, has_failed: bool, is_wanted: bool
) -> None:
    last = transfer(part=1, parts=2)
    found = after_transfer(last, has_failed=has_failed, is_wanted=is_wanted, is_checked_by_worker=True)
    assert found is (AfterTransfer.WORKER if is_wanted and not has_failed else AfterTransfer.END)
