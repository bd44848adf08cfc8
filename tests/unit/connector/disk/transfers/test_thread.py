"""The thread behind the disk tier: its patience, its journal, and its end."""

import errno
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from tests.shared.waiting import eventually
from tests.unit.connector.disk.rig.blocks import (
    BLOCK,
    capacity_for,
    content_of,
    key_of,
    number_of,
    request_for,
)
from tests.unit.connector.disk.rig.faulty_engine import SOON_S, Fail, Keep
from tests.unit.connector.disk.rig.rig import IMPATIENT, Rig, found_by_the_next, rig_in
from tests.unit.connector.disk.rig.tier_files import journal, open_journal

from kvtier_connector.core.behind.messages import Ended, Order
from kvtier_connector.core.disk.files.journal import Entries, Journal
from kvtier_connector.core.disk.files.store import Store
from kvtier_connector.core.disk.transfers.loop import DiskThread
from kvtier_connector.errors import FolderInUseError


@pytest.mark.parametrize("what", ["read", "write", "journal"])
def test_a_disk_that_opens_and_fails_again_is_tried_ever_less_often(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, broken = Journal._write, [False]

    def failing(journal: Journal, frame: bytes) -> None:
        if broken[0]:
            raise OSError(errno.ENOSPC, "full")
        write(journal, frame)

    monkeypatch.setattr(Journal, "_write", failing)
    with rig_in(tmp_path, timings=replace(IMPATIENT, first_retry_s=1.0)) as rig:
        served = rig.disk.within._loop._served
        rig.stored(range(4))
        waits = list[float]()
        for _ in range(4):
            waits.append(served._retry_s)
            broken[0] = what == "journal"
            rig.engine.fault(lambda _io: Fail(errno.EROFS) if what != "journal" else None)
            if what == "read":
                rig.begin_load([0])
            else:
                rig.begin_store([9])
            rig.until_down()
            broken[0] = False
            rig.engine.fault(lambda _io: None)
            served._retry_at_s = 0.0  # as if it had waited
            rig.until_up()
        assert waits == [1, 2, 4, 8]
        assert rig.stored([12]) == [12]
        assert served._retry_s == 1


def test_a_journal_written_anew_has_what_its_owner_has_not_been_told_of(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored([1])
        rig.begin_store([2, 3])
        _until_written(rig.disk.within, 2)
        taken = rig.disk.take_events()  # told, and not yet taken note of
        rig.begin_store([4, 5])
        _until_written(rig.disk.within, 2)
        _renew_journal(rig.store)
        rig.disk.within._loop.outbox._events.extendleft(reversed(taken))
        rig.disk.ended.subtract(event.order for event in taken if isinstance(event, Ended))
        rig.quiet()
    assert found_by_the_next(tmp_path) == {number: content_of(number) for number in range(1, 6)}


def test_a_journal_written_anew_leaves_out_what_is_being_overwritten(tmp_path: Path) -> None:
    with rig_in(tmp_path, 4) as rig:
        rig.stored(range(4))
        rig.engine.fault(lambda _io: Keep())
        rig.begin_store([7])
        rig.engine.await_kept(1)
        (left,) = (number_of(key) for key in rig.seen.evicted)
        _renew_journal(rig.store)
        said, recovered = open_journal(journal(tmp_path), rig.store.shape)
        said.close()
        there = {number_of(key.tobytes()) for key in recovered.entries.keys}
        assert there == set(range(4)) - {left}
        rig.engine.release()
        rig.quiet()


def test_the_journal_is_bounded_while_there_is_always_something_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rig_in(tmp_path, 16) as rig:
        monkeypatch.setattr(type(rig.store), "wants_compaction", False)
        rig.store._full_at_bytes = 2000
        sizes = list[int]()
        for start in range(0, 400, 8):
            rig.stored(range(start, start + 8))
            sizes.append(journal(tmp_path).stat().st_size)
        assert max(sizes) < 2000 + 500  # what one look at the disk adds
        held = [number for number in range(400) if rig.tier.holds(key_of(number))]
        assert len(held) == 16
    assert found_by_the_next(tmp_path) == {number: content_of(number) for number in held}


def test_an_error_of_its_own_turns_the_disk_off_and_it_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored([1])
        errors = [ZeroDivisionError("a mistake")]
        check = Store.check

        def failing(store: Store) -> None:
            if errors:
                raise errors.pop()
            check(store)

        monkeypatch.setattr(Store, "check", failing)
        rig.until_down()
        assert "the disk tier is off: ZeroDivisionError: a mistake; serving from memory" in rig.seen.notes
        rig.until_up()
        assert rig.loaded([1]) == {1: content_of(1)}


def test_orders_for_another_store_are_refused(tmp_path: Path) -> None:
    with rig_in(tmp_path) as rig:
        rig.stored([1])
        memory = memoryview(bytearray(BLOCK))
        stranger = Order(write=True, generation=-1, key=key_of(1), slot=0, memory_slot=0, memory=(memory,))
        begun = rig.engine.begun.total()
        rig.disk.within.send([stranger])
        assert rig.disk.wait(60)
        (event,) = rig.disk.within.take_events()
        assert isinstance(event, Ended)
        assert (event.order, str(event.error)) == (stranger, "the disk tier has let go of this block")
        assert rig.engine.begun.total() == begun
        assert rig.loaded([1]) == {1: content_of(1)}


def test_closing_ends_every_order_and_lets_the_folder_go(tmp_path: Path) -> None:
    with rig_in(tmp_path, 64) as rig:
        rig.stored(range(20))
        rig.engine.fault(lambda _io: Keep())
        rig.begin_load(range(20))
        rig.begin_store(range(20, 30))
        rig.engine.await_kept(8)
        rig.disk.within._loop.is_closing = True
        rig.engine.release()
        rig.tier.close()
        assert "kvtier-disk" not in {each.name for each in threading.enumerate()}
        rig.quiet()
        Store.open(rig.request).close()
        rig.tier._store = None  # nobody serves it any more


def test_closing_writes_what_waits_to_be_written(tmp_path: Path) -> None:
    rig = Rig(request_for(tmp_path, capacity_for(64)))
    rig.engine.fault(lambda _io: Keep())
    rig.begin_store(range(40))
    rig.engine.await_kept(rig.engine.depth)
    closing = threading.Thread(target=rig.disk.close, args=(SOON_S,))
    closing.start()
    eventually(lambda: rig.disk.within._loop.is_closing, "a thread that has to end")
    rig.engine.release()
    closing.join()
    assert sorted(found_by_the_next(tmp_path, 64)) == list(range(40))


def test_closing_a_disk_that_hangs_keeps_the_folder_until_the_process_ends(tmp_path: Path) -> None:
    rig = Rig(request_for(tmp_path, capacity_for(4)), timings=replace(IMPATIENT, check_s=0.0))
    rig.engine.fault(lambda _io: Keep())
    rig.begin_store([2])
    rig.engine.await_kept(1)
    rig.disk.close(SOON_S)
    assert not rig.disk.within._thread.is_alive()
    with pytest.raises(FolderInUseError):  # the kernel may still write into it
        Store.open(rig.request)
    rig.store.close()


def _until_written(disk: DiskThread, count: int) -> None:
    while sum(isinstance(event, Ended) for event in disk._loop.outbox._events.copy()) < count:
        assert disk.wait(60)


def _renew_journal(store: Store) -> None:
    """Have the thread write the journal anew at its next look, and wait until it has."""
    renewed, compact = threading.Event(), store.compact

    def watched(unacknowledged: Entries) -> None:
        compact(unacknowledged)
        renewed.set()

    store.compact = watched  # type: ignore[method-assign]
    store._compact_at_bytes = 0
    assert renewed.wait(SOON_S)
