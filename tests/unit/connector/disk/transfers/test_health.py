"""When a disk is given up, and when it is tried again."""

import errno

import pytest

from kvtier_connector.core.disk.timings import DEFAULT_TIMINGS
from kvtier_connector.core.disk.transfers.reopening_store import Health

BAD_SECTOR = OSError(errno.EIO, "a bad sector")


def test_three_failures_in_a_row_are_too_many() -> None:
    health = Health()
    assert [(health := health.after(BAD_SECTOR)).is_down for _ in range(3)] == [False, False, True]


def test_one_success_in_between_makes_up_for_all() -> None:
    health = Health()
    for error in (BAD_SECTOR, BAD_SECTOR, None, BAD_SECTOR, BAD_SECTOR):
        health = health.after(error)
    assert not health.is_down
    assert health.after(BAD_SECTOR).is_down


@pytest.mark.parametrize("name", ["ENOSPC", "EDQUOT", "EROFS", "ENODEV", "ENXIO", "ESTALE", "EBADF"])
def test_what_every_block_would_meet_is_enough_once(name: str) -> None:
    assert Health().after(OSError(getattr(errno, name), name)).is_down


@pytest.mark.parametrize("name", ["EIO", "EAGAIN", "EFAULT", "EINVAL", "ETIMEDOUT"])
def test_what_one_block_met_is_not(name: str) -> None:
    assert not Health().after(OSError(getattr(errno, name), name)).is_down


def test_every_attempt_waits_twice_as_long_up_to_a_minute() -> None:
    health, waits = Health(), list[float]()
    for _ in range(9):
        waits.append(DEFAULT_TIMINGS.retry_s(health.attempts))
        health = health.tried_again()
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert DEFAULT_TIMINGS.retry_s(100_000) == 60
    assert health.after(BAD_SECTOR).attempts == health.reopened().attempts == 9
    assert health.after(None).attempts == 0
