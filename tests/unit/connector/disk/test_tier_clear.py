"""What was cleared is never found again: with transfers under way, with the disk off, as it comes back.

Nor is what was stored since, by the next start: the weights that computed it may be others than that one has.
"""

import errno
from pathlib import Path

import pytest
from tests.unit.connector.disk.rig.blocks import content_of, key_of
from tests.unit.connector.disk.rig.faulty_engine import Fail, Keep
from tests.unit.connector.disk.rig.rig import Rig, found_by_the_next, rig_in

from kvtier_connector.core.disk.files.store import Store
from kvtier_connector.core.disk.transfers.messages import Up
from kvtier_connector.errors import DiskError


def contents(*numbers: int, epoch: int = 0) -> dict[int, bytes]:
    return {number: content_of(number, epoch) for number in numbers}


def _nothing_before_is_found(rig: Rig, path: Path) -> None:
    assert rig.tier.used == 0
    assert not any(rig.tier.holds(key_of(number)) for number in range(16))
    assert rig.stored([1, 2], epoch=1) == [1, 2]
    assert rig.loaded([1, 2]) == contents(1, 2, epoch=1)
    rig.close()
    assert found_by_the_next(path) == {}


def test_what_was_cleared_is_not_found_again(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored(range(8))
        rig.tier.clear()
        _nothing_before_is_found(rig, tmp_path)


def test_what_is_stored_after_a_clear_is_not_kept_by_a_disk_that_comes_back_either(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored(range(8))
        rig.tier.clear()
        assert rig.stored([1], epoch=1) == [1]
        rig.engine.fault_next(Fail(errno.EROFS))
        rig.begin_load([1])
        rig.until_down()
        rig.until_up()
        _nothing_before_is_found(rig, tmp_path)


def test_a_clear_that_is_followed_by_the_end_is_done(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored(range(8))
        rig.disk.within._loop.is_closing = True  # the thread sees the end before it sees the message
        rig.tier.clear()
        rig.close()
    assert found_by_the_next(tmp_path) == {}


def test_transfers_under_way_when_it_is_cleared_count_for_nothing(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored(range(4))
        rig.engine.fault(lambda _io: Keep())
        rig.begin_load([0, 1])
        rig.begin_store([5, 6])
        rig.engine.await_kept(4)
        rig.tier.clear()
        rig.engine.fault(lambda _io: None)
        rig.begin_store([7], epoch=1)  # into a slot that a transfer still has
        rig.engine.release()
        rig.quiet()
        assert sorted(rig.seen.lost) == [key_of(0), key_of(1)]
        assert rig.arrived == {}
        assert not rig.tier.holds(key_of(5))
        assert rig.loaded([7]) == contents(7, epoch=1)
    assert found_by_the_next(tmp_path) == {}


def test_a_load_that_ended_before_a_clear_and_is_reported_after_it_counts_for_nothing(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored(range(4))
        rig.begin_load([2])
        assert rig.disk.wait(60)
        rig.tier.clear()
        rig.quiet()
        assert (rig.arrived, rig.seen.lost, rig.seen.ended) == ({}, [key_of(2)], [key_of(2)])


def test_orders_that_wait_when_it_is_cleared_count_for_nothing(tmp_path: Path) -> None:
    with rig_in(tmp_path, 32) as rig:
        rig.stored(range(4))
        rig.engine.fault(lambda _io: Keep())
        rig.begin_store(range(10, 30))
        rig.engine.await_kept(8)
        rig.tier.clear()
        rig.engine.release()
        rig.quiet()
        assert rig.tier.used == 0
    assert found_by_the_next(tmp_path, 32) == {}


def test_a_clear_while_the_disk_is_off_is_done_when_it_comes_back(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored(range(8))
        rig.reopening = [DiskError("not yet")] * 1000
        rig.engine.fault_next(Fail(errno.EROFS))
        rig.begin_load([0])
        rig.until_down()
        rig.tier.clear()
        rig.step()  # it is taken note of
        rig.reopening.clear()
        rig.until_up()
        _nothing_before_is_found(rig, tmp_path)


def test_a_clear_while_the_disk_is_off_is_done_at_the_end(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored(range(8))
        rig.reopening = [DiskError("not yet")] * 1_000_000
        rig.engine.fault_next(Fail(errno.EROFS))
        rig.begin_load([0])
        rig.until_down()
        rig.tier.clear()
        rig.step()
        rig.disk.within._loop._served._retry_at_s = float("inf")
        rig.reopening.clear()
    assert found_by_the_next(tmp_path) == {}


def test_a_clear_just_as_the_disk_comes_back(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored(range(8))
        rig.engine.fault_next(Fail(errno.EROFS))
        rig.begin_load([0])
        rig.until_down()
        assert rig.disk.wait(60)  # it is back, and its owner has not been told yet
        rig.tier.clear()
        rig.until_up()
        _nothing_before_is_found(rig, tmp_path)


def test_orders_between_a_clear_and_the_news_that_the_disk_is_back(tmp_path: Path) -> None:
    """Their slots are those of an index that is no more."""
    with rig_in(tmp_path, 4) as rig:
        rig.stored(range(4))
        rig.engine.fault_next(Fail(errno.EROFS))
        rig.begin_load([0])
        while not any(
            isinstance(event, Up) for event in rig.disk.within._loop.outbox.unacknowledged_events()
        ):
            assert rig.disk.wait(60)
        rig.tier.clear()
        rig.begin_store([5, 6], epoch=1)
        rig.step()  # now its owner knows
        rig.begin_store([7, 8], epoch=1)
        rig.quiet()
        assert not rig.tier.holds(key_of(5))
        assert rig.loaded([7, 8]) == contents(7, 8, epoch=1)
    assert found_by_the_next(tmp_path, 4) == {}


@pytest.mark.parametrize("at", ["first", "coming back"])
def test_a_clear_that_fails_is_made_up_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    whole, left = Store.clear, [DiskError("full")] * 3

    def failing(store: Store) -> None:
        if left:
            raise left.pop()
        whole(store)

    with rig_in(tmp_path) as rig:
        rig.stored(range(8))
        monkeypatch.setattr(Store, "clear", failing)
        if at == "coming back":
            rig.engine.fault_next(Fail(errno.EROFS))
            rig.begin_load([0])
            rig.until_down()
        rig.tier.clear()
        while left or rig.tier.is_down:
            rig.step()
        _nothing_before_is_found(rig, tmp_path)


def test_clears_in_a_row_with_the_disk_off_and_on(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        for epoch in range(1, 12):
            rig.stored(range(8), epoch)
            rig.tier.clear()
            if epoch % 3:
                rig.engine.fault_next(Fail(errno.ENOSPC), write=True)
                rig.begin_store([9], epoch)
                rig.until_down()
            if epoch % 2:
                rig.tier.clear()
            rig.tier.clear()
            while rig.tier.is_down or rig.tier._uncleared:
                rig.step()
            rig.quiet()
            assert rig.tier.used == 0
        _nothing_before_is_found(rig, tmp_path)
