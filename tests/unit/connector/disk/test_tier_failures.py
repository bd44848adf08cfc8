"""A disk that fails, hangs or goes: the tier is turned off, says so, and comes back."""

import errno
import os
import threading
from pathlib import Path

import pytest
from tests.unit.connector.disk.rig.blocks import content_of, key_of, number_of
from tests.unit.connector.disk.rig.faulty_engine import Fail, Keep
from tests.unit.connector.disk.rig.rig import found_by_the_next, rig_in
from tests.unit.connector.disk.rig.tier_files import flip, journal, segment

from kvtier_connector.core.disk.files.folder import LockedFolder
from kvtier_connector.core.disk.files.store import Store
from kvtier_connector.errors import DiskError, FolderInUseError, SettingError


def contents(*numbers: int, epoch: int = 0) -> dict[int, bytes]:
    return {number: content_of(number, epoch) for number in numbers}


def test_three_failures_in_a_row_turn_the_disk_off_and_it_comes_back(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored(range(8))
        rig.reopening = [DiskError("not yet"), SettingError("nor now"), FolderInUseError("nor now")]
        rig.engine.fault_next(*[Fail(errno.EIO)] * 2, write=False)
        rig.loaded([0, 1])
        rig.loaded([2])
        rig.engine.fault_next(*[Fail(errno.EIO)] * 2, write=False)
        rig.loaded([3, 4])
        assert not rig.tier.is_down  # one in between went well
        rig.engine.fault_next(*[Fail(errno.EIO)] * 3, write=False)
        assert rig.loaded([5, 6, 7]) == {}
        rig.until_down()
        assert rig.tier.used == 0
        assert rig.tier.lacking([key_of(20)]) == []
        assert rig.seen.notes[-1].startswith("the disk tier is off: [Errno 5] Input/output error; serving")
        rig.until_up()
        assert rig.reopening == []
        assert rig.seen.notes[-1].startswith("the disk tier is back, with ")
        assert rig.loaded([2]) == contents(2)
        assert rig.stored([20]) == [20]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.ENODEV])
@pytest.mark.parametrize("write", [True, False])
def test_a_disk_that_is_full_read_only_or_gone_is_off_at_once(
    tmp_path: Path, number: int, *, write: bool
) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored([0, 1])
        rig.engine.fault_next(Fail(number), write=write)
        if write:
            rig.begin_store([5])
        else:
            rig.begin_load([0])
        rig.until_down()
        rig.until_up()
        assert rig.loaded([1]) == contents(1)
        assert rig.tier.holds(key_of(5)) is False


def test_orders_that_wait_when_the_disk_is_turned_off_all_end(tmp_path: Path) -> None:
    with rig_in(tmp_path, 64) as rig:
        rig.stored(range(30))
        rig.engine.fault(lambda io: Keep() if not io.write else None)
        rig.begin_load(range(20))
        rig.begin_store(range(30, 40))
        rig.engine.await_kept(8)
        rig.engine.become_late()
        rig.until_down()
        assert sorted(map(number_of, rig.seen.lost)) == list(range(20))
        assert len(rig.seen.ended) == 12  # those that the disk never had
        rig.engine.release()
        rig.quiet()
        assert sorted(map(number_of, rig.seen.ended)) == list(range(20))
        assert len(rig.seen.lost) == 20
        assert rig.arrived == {}


def test_a_disk_that_hangs_loses_its_blocks_at_once_and_gives_memory_back_late(tmp_path: Path) -> None:
    with rig_in(tmp_path, 8) as rig:
        rig.stored(range(8))
        rig.engine.fault(lambda _io: Keep())
        rig.begin_load([1])
        rig.begin_store([20])
        rig.engine.await_kept(2)
        rig.engine.become_late()
        rig.until_down()
        assert "a block has taken longer than 60 s" in rig.seen.notes[-1]
        assert rig.seen.lost == [key_of(1)]
        assert rig.seen.ended == []
        assert key_of(20) not in rig.seen.released
        assert len(rig.free) == 62
        assert rig.tier.is_down  # as long as the disk has the memory, it is not opened again
        with pytest.raises(FolderInUseError):
            LockedFolder.take(tmp_path, "another")
        rig.engine.release()
        rig.until_up()
        assert rig.seen.lost == rig.seen.ended == [key_of(1)]
        assert key_of(20) in rig.seen.released
        assert len(rig.free) == 64
        assert rig.arrived == {}
        left = {number_of(key) for key in rig.seen.evicted}
        assert len(left) == 1
        held = [number for number in range(8) if rig.tier.holds(key_of(number))]
        assert rig.loaded(held) == contents(*sorted(set(range(8)) - left))


def test_nothing_is_opened_again_while_the_disk_has_memory_of_ours(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored([0])
        rig.engine.fault(lambda _io: Keep())
        rig.begin_load([0])
        rig.engine.await_kept(1)
        rig.engine.become_late()
        rig.until_down()
        for _ in range(3):
            rig.tier.clear()
            rig.step()  # it was answered, hence the thread has had its turn
        assert rig.attempts == 0
        rig.engine.release()
        rig.until_up()
        assert rig.attempts == 1


@pytest.mark.parametrize("instead", ["nothing", "another folder", "no lock"])
def test_a_folder_that_is_gone_turns_the_disk_off_and_a_new_one_is_cold(tmp_path: Path, instead: str) -> None:
    path = tmp_path / "tier"
    with rig_in(path) as rig:
        rig.stored(range(4))
        if instead == "no lock":
            (path / "lock").unlink()
        else:
            path.rename(tmp_path / "elsewhere")
        if instead == "another folder":
            path.mkdir()
        rig.until_down()
        rig.until_up()
        assert rig.tier.used == (4 if instead == "no lock" else 0)
        assert rig.stored([9]) == [9]
        assert rig.loaded([9]) == contents(9)
    assert found_by_the_next(path) == contents(*([0, 1, 2, 3] if instead == "no lock" else []), 9)


def test_a_journal_that_cannot_be_written_turns_the_disk_off(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored(range(4))
        os.close(rig.store._journal._descriptor)  # as a disk does that is full: the next write of it fails
        rig.store._journal._descriptor = os.open(journal(tmp_path), os.O_RDONLY)
        rig.begin_store([5, 6])
        rig.until_down()
        rig.until_up()
        assert not rig.tier.holds(key_of(5))
        assert rig.loaded(range(4)) == contents(*range(4))
        assert rig.stored([5]) == [5]


def test_a_journal_that_cannot_forget_turns_the_disk_off(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored(range(4))
        flip(segment(tmp_path), 0)
        os.close(rig.store._journal._descriptor)
        rig.store._journal._descriptor = os.open(journal(tmp_path), os.O_RDONLY)
        assert rig.loaded([0]) == {}
        rig.until_down()
        assert "Bad file descriptor" in rig.seen.notes[-1]
        assert "Error:" not in rig.seen.notes[-1]  # one line for people
        rig.until_up()


def test_a_folder_that_cannot_be_made_is_tried_until_it_can(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "tier"
    with rig_in(path) as rig:
        rig.stored([1])
        reopened = rig.reopening
        path.rename(tmp_path / "elsewhere")
        (tmp_path / "deep").rmdir()
        (tmp_path / "deep").touch()  # no folder can be made here
        rig.until_down()
        (tmp_path / "deep").unlink()
        rig.until_up()
        assert reopened == []
        assert rig.tier.used == 0


def test_a_folder_that_another_engine_has_meanwhile_is_left_to_it(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored(range(4))
        takers = list[LockedFolder]()
        tried = list[str]()
        whole = Store.open

        def reopened() -> Store:
            if not takers:
                takers.append(LockedFolder.take(tmp_path, "the other"))
            try:
                return whole(rig.request)
            except FolderInUseError as error:
                tried.append(str(error))
                if len(tried) == 2:
                    takers[0].close()
                raise

        rig.disk.within._loop._served._reopen = reopened
        rig.engine.fault_next(Fail(errno.EROFS))
        rig.begin_load([0])
        rig.until_down()
        rig.until_up()
        assert len(tried) == 2
        assert "in use by the other" in tried[0]
        assert rig.loaded([1]) == contents(1)


def test_a_thread_that_the_system_keeps_loses_its_blocks_and_goes_on_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rig_in(tmp_path, 8) as rig:
        rig.stored(range(4))
        inside, free = threading.Event(), threading.Event()

        def hang() -> None:
            inside.set()
            free.wait()

        monkeypatch.setattr(rig.store, "check", hang)
        try:
            assert inside.wait(60)
            rig.begin_load([1, 2])
            thread = rig.disk.within
            assert rig.tier.poll() is None
            thread._loop.turned_at_s -= 3600.0  # it has been there for long
            now = rig.tier.poll()
            assert now is not None
            assert now.lost == [key_of(1), key_of(2)]
            assert "the operating system does not answer" in now.notes[0]
            assert rig.tier.is_down
            assert not rig.tier.holds(key_of(0))
            assert rig.tier.lacking([key_of(9)]) == []
            rig.take(now)
        finally:
            free.set()
        rig.quiet()
        assert rig.seen.lost == rig.seen.ended == [key_of(1), key_of(2)]
        assert rig.arrived == {}
        assert not rig.tier.is_down
        assert rig.loaded(range(4)) == contents(0, 1, 2, 3)
