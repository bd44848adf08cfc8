"""When a disk is given up, and when it is tried again."""

import errno
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.connector.disk.rig.blocks import capacity_for, request_for

from kvtier_connector.core.disk.files.store import Store
from kvtier_connector.core.disk.timings import DEFAULT_TIMINGS
from kvtier_connector.core.disk.transfers.reopening_store import Health, ReopeningStore
from kvtier_connector.errors import DiskError

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
        health = replace(health, attempts=health.attempts + 1)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert DEFAULT_TIMINGS.retry_s(100_000) == 60
    assert health.after(BAD_SECTOR).attempts == 9
    assert health.after(None).attempts == 0


def test_a_disk_is_left_alone_for_a_while_that_doubles(tmp_path: Path) -> None:
    now, opened = [1000.0], list[float]()
    request = request_for(tmp_path, capacity_for(4))

    def reopen() -> Store:
        opened.append(now[0])
        if len(opened) < 3:
            raise DiskError("it still fails")
        return Store.open(request)

    served = ReopeningStore(Store.open(request), reopen, DEFAULT_TIMINGS, lambda: now[0])
    served.let_go()
    now[0] += 10
    assert served.try_again() is None  # the old store has the folder
    served.close_old()
    while served.store is None:
        served.try_again()
        now[0] += 0.5
    served.close()
    assert opened == [1010.0, 1012.0, 1016.0]


def test_a_disk_that_is_given_up_again_is_left_alone_for_longer(tmp_path: Path) -> None:
    now = [1000.0]
    request = request_for(tmp_path, capacity_for(4))
    served = ReopeningStore(Store.open(request), lambda: Store.open(request), DEFAULT_TIMINGS, lambda: now[0])

    def waited_s() -> float:
        """Return how long it takes until it is served again."""
        served.let_go()
        served.close_old()
        before_s = now[0]
        while served.try_again() is None:
            now[0] += 0.5
        return now[0] - before_s

    assert [waited_s() for _ in range(4)] == [1, 2, 4, 8]
    served.on_transfer_ended(None)
    assert waited_s() == 1
    served.close()
