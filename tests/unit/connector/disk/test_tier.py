"""The disk tier as its owner sees it: real files and transfers, and blocks that fail one by one."""

import errno
import time
from pathlib import Path

import pytest
from tests.unit.connector.disk.rig.blocks import BLOCK, content_of, key_of, number_of
from tests.unit.connector.disk.rig.faulty_engine import Fail, Keep, Short
from tests.unit.connector.disk.rig.rig import found_by_the_next, rig_in
from tests.unit.connector.disk.rig.tier_files import flip, segment

from kvtier_common.hints import Priority
from kvtier_connector.core.index.hints import BlockHint


def contents(*numbers: int, epoch: int = 0) -> dict[int, bytes]:
    return {number: content_of(number, epoch) for number in numbers}


# ---- a disk that works ----


@pytest.mark.parametrize("direct", [True, False])
def test_what_is_stored_is_loaded_in_this_process_and_in_the_next(tmp_path: Path, *, direct: bool) -> None:
    with rig_in(tmp_path, direct=direct) as rig:
        assert rig.stored(range(10)) == list(range(10))
        assert rig.loaded([3, 9, 0]) == contents(3, 9, 0)
        assert (rig.tier.used, rig.tier.slots, rig.tier.is_down) == (10, 16, False)
        counts = rig.tier.take_counts()
        assert (counts.store_bytes, counts.load_bytes) == (10 * BLOCK, 3 * BLOCK)
    with rig_in(tmp_path, direct=direct) as rig:
        assert rig.store.restored == 10
        assert rig.loaded(range(10)) == contents(*range(10))


def test_more_than_it_holds_makes_room_and_says_what_left(tmp_path: Path) -> None:
    with rig_in(tmp_path, 8) as rig:
        rig.stored(range(8))
        assert rig.stored(range(8, 13)) == list(range(8, 13))
        left = {number_of(key) for key in rig.seen.evicted}
        assert len(left) == rig.tier.take_counts().evicted == 5
        assert rig.tier.used == 8
        stays = sorted(set(range(13)) - left)
        assert rig.loaded(stays) == contents(*stays)
    assert found_by_the_next(tmp_path, 8) == contents(*stays)


def test_what_is_said_of_blocks_counts_on_disk_as_it_does_in_memory(tmp_path: Path) -> None:
    with rig_in(tmp_path, 16) as rig:
        rig.stored(range(4), hint=BlockHint(time.monotonic() + 3600, Priority.HIGH))
        rig.stored(range(4, 8))
        rig.stored(range(8, 12), hint=BlockHint(priority=Priority.LOW))
        rig.stored(range(12, 20))
        assert rig.loaded(range(4)) == contents(*range(4))
        assert not any(rig.tier.holds(key_of(number)) for number in range(8, 12))
        rig.tier.touch([key_of(number) for number in range(4)], BlockHint(priority=Priority.LOW))
        for first in range(20, 52, 8):
            rig.stored(range(first, first + 8))
        assert not any(rig.tier.holds(key_of(number)) for number in range(20))


def test_only_so_many_wait_to_be_written_and_what_is_there_is_not_written_again(tmp_path: Path) -> None:
    with rig_in(tmp_path, 16, memory_slots=4) as rig:
        six = [key_of(number) for number in range(6)]
        assert rig.tier.admit(rig.tier.lacking(six)) == six[:4]
        rig.engine.fault(lambda _io: Keep())
        rig.begin_store([0, 1, 2])
        rig.engine.await_kept(3)
        assert rig.tier.lacking(six) == six[3:]
        assert rig.tier.admit(six[3:]) == six[3:4]
        rig.engine.release()
        rig.quiet()
        assert rig.tier.admit(rig.tier.lacking(six)) == six[3:]


def test_what_finds_no_room_is_released_at_once(tmp_path: Path) -> None:
    with rig_in(tmp_path, 4) as rig:
        rig.engine.fault(lambda _io: Keep())
        rig.begin_store(range(3))
        rig.begin_store(range(3, 6))
        assert rig.seen.released == [key_of(4), key_of(5)]
        rig.engine.release()
        rig.quiet()
        assert sorted(map(number_of, rig.seen.stored)) == [0, 1, 2, 3]


def test_what_it_does_not_hold_cannot_be_loaded(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored([1])
        with pytest.raises(KeyError):
            rig.tier.load([key_of(2)], rig.tier.forget_memory())
        assert rig.disk.sent.total() == 1


def test_a_block_that_is_being_written_is_not_held_yet(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        rig.engine.fault(lambda _io: Keep())
        rig.begin_store([1])
        rig.engine.await_kept(1)
        assert not rig.tier.holds(key_of(1))
        rig.engine.release()
        rig.quiet()
        assert rig.tier.holds(key_of(1))


def test_writes_wait_while_there_is_much_to_read(tmp_path: Path) -> None:
    with rig_in(tmp_path, 32) as rig:
        rig.stored(range(20))
        rig.engine.fault(lambda _io: Keep())
        rig.begin_load(range(4))
        rig.engine.await_kept(4)
        rig.begin_store(range(20, 28))
        rig.engine.await_kept(6)  # of a depth of 8
        assert rig.engine.begun[True] == 22
        rig.begin_load(range(4, 8))
        rig.engine.await_kept(8)
        assert (rig.engine.begun[True], rig.engine.begun[False]) == (22, 6)
        rig.engine.release()
        rig.quiet()
        assert len(rig.arrived) == 8


# ---- a block that fails ----


@pytest.mark.parametrize("fault", [Fail(errno.EIO), Short()])
def test_a_read_that_fails_costs_its_block_and_no_other(tmp_path: Path, fault: Fail | Short) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored(range(4))
        rig.engine.fault_next(fault, write=False)
        assert rig.loaded([2]) == {}
        assert (rig.seen.lost, rig.seen.ended) == ([key_of(2)], [key_of(2)])
        assert not rig.tier.is_down
        assert not rig.tier.holds(key_of(2))
        assert rig.tier.take_counts().failed == 1
        assert rig.loaded([0, 1, 3]) == contents(0, 1, 3)
        assert rig.stored([2]) == [2]
        assert rig.loaded([2]) == contents(2)
    assert found_by_the_next(tmp_path) == contents(*range(4))


@pytest.mark.parametrize("fault", [Fail(errno.EIO), Short()])
def test_a_write_that_fails_is_released_and_never_found(tmp_path: Path, fault: Fail | Short) -> None:
    with rig_in(tmp_path, 4) as rig:
        rig.stored(range(4))
        rig.engine.fault_next(fault, write=True)
        assert rig.stored([7]) == []
        assert key_of(7) in rig.seen.released
        assert key_of(7) not in rig.seen.stored
        (left,) = (number_of(key) for key in rig.seen.evicted)
        assert not rig.tier.is_down
        stays = sorted(set(range(4)) - {left})
        assert rig.loaded(stays) == contents(*stays)
    assert found_by_the_next(tmp_path, 4) == contents(*stays)


def test_a_damaged_block_is_dropped_and_counted_and_can_be_stored_again(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored(range(4))
        for place in (0, BLOCK - 1, BLOCK, 4 * BLOCK - 1):
            flip(segment(tmp_path), place)
        assert rig.loaded(range(4)) == contents(2)
        counts = rig.tier.take_counts()
        assert (counts.corrupt, counts.failed) == (3, 0)
        assert not rig.tier.is_down  # the disk is not to blame
        assert [rig.tier.holds(key_of(number)) for number in range(4)] == [False, False, True, False]
        assert sorted(rig.stored(range(4))) == [0, 1, 3]
        assert rig.loaded(range(4)) == contents(*range(4))


# ---- memory that is forgotten ----


def test_memory_of_orders_that_nobody_waits_for_is_reported_once(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored(range(4))
        rig.engine.fault(lambda _io: Keep())
        rig.begin_load([0, 1])
        rig.begin_store([5])
        rig.engine.await_kept(3)
        in_use = sorted(set(range(64)) - set(rig.free))
        assert rig.forget_memory() == in_use
        assert rig.forget_memory() == in_use  # still
        rig.begin_load([2])
        assert rig.forget_memory() == sorted([*in_use, *(set(range(64)) - set(rig.free) - set(in_use))])
        rig.seen.released.clear()
        rig.engine.release()
        rig.quiet()
        assert len(rig.seen.orphans) == len(set(rig.seen.orphans)) == 4
        assert (rig.seen.loaded, rig.seen.lost, rig.seen.ended, rig.seen.released) == ([], [], [], [])
        assert rig.forget_memory() == []
        assert rig.loaded([0, 2, 5]) == contents(0, 2, 5)  # what was on its way to disk has arrived there


@pytest.mark.parametrize("then", ["clear", "hang"])
def test_memory_of_forgotten_orders_is_reported_once_when_they_fail(tmp_path: Path, then: str) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored(range(4))
        rig.engine.fault(lambda _io: Keep())
        rig.begin_load([0, 1])
        rig.engine.await_kept(2)
        in_use = rig.forget_memory()
        if then == "clear":
            rig.tier.clear()
        else:
            rig.engine.become_late()
            rig.until_down()
        assert rig.seen.orphans == []
        rig.engine.release()
        rig.quiet()
        assert sorted(rig.seen.orphans) == in_use
        assert rig.seen.lost == []


def test_memory_that_two_orders_use_is_given_back_by_the_last(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        rig.engine.fault(lambda _io: Keep())
        rig.begin_store([1])
        rig.engine.await_kept(1)
        rig.tier.clear()
        (slot,) = rig.slot_of.values()
        slots = rig._slots([key_of(1)])
        rig.tier.store([key_of(1)], slots, rig.seen)  # it lacks the block again
        assert rig.forget_memory() == [slot]
        rig.engine.release()
        rig.quiet()
        assert rig.seen.orphans == [slot]


# ---- what it learns ----


def test_bandwidth_is_what_was_read_since_it_was_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = list[tuple[float, float]]()
    with rig_in(tmp_path) as rig:
        monkeypatch.setattr(type(rig.tier.break_even.read), "add", lambda _rate, *what: measured.append(what))
        rig.stored(range(8))
        rig.loaded(range(4))
        assert sum(amount for amount, _ in measured) == 4 * BLOCK
        rig.begin_load([5])
        assert rig.disk.wait(60)
        rig.forget_memory()
        rig.begin_load([6])  # asked after the end of what is reported first
        rig.quiet()
    assert all(seconds > 0 for _, seconds in measured)
