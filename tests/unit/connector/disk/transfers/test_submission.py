"""How the disk tier's thread keeps a disk busy: it asks for more before it looks at what has come."""

import errno
import threading
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import pytest
from tests.unit.connector.disk.rig.blocks import BLOCK, capacity_for, content_of, key_of, request_for
from tests.unit.connector.disk.rig.faulty_engine import Keep
from tests.unit.connector.disk.rig.rig import Rig, rig_in
from typing_extensions import Buffer

from kvtier_connector.core.disk import tier
from kvtier_connector.core.disk.files import store as store_file
from kvtier_connector.core.disk.files.fingerprint import bound_checksum
from kvtier_connector.core.disk.files.journal import Entries
from kvtier_connector.core.disk.files.store import Store
from kvtier_connector.core.disk.io.engine import BlockIO, Completion
from kvtier_connector.core.disk.transfers import submission
from kvtier_connector.core.disk.transfers.messages import Message
from kvtier_connector.core.disk.transfers.submission import lots, writes_to_begin
from kvtier_connector.core.index.keytable import Slots


def watch_submits(rig: Rig, monkeypatch: pytest.MonkeyPatch, seen: list[int]) -> None:
    """Have the number of transfers of each hand-over be noted."""
    submit = rig.engine.submit

    def watched(ios: Sequence[BlockIO]) -> None:
        seen.append(len(ios))
        submit(ios)

    monkeypatch.setattr(rig.engine, "submit", watched)


def test_the_disk_is_asked_for_more_before_what_has_come_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(request_for(tmp_path, capacity_for(8)), depth=1)
    rig.stored(range(3))
    seen = list[int]()
    watch_submits(rig, monkeypatch, seen)
    checksum = bound_checksum

    def watched(whole: int, part: bytes, *data: Buffer) -> int:
        seen.append(0)
        return checksum(whole, part, *data)

    monkeypatch.setattr(store_file, "bound_checksum", watched)
    assert rig.loaded(range(3)) == {number: content_of(number) for number in range(3)}
    assert seen == [1, 1, 0, 1, 0, 0]
    rig.tier.close()


def test_a_disk_gets_its_first_transfers_before_the_last_are_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submission, "FIRST_BYTES", 2 * BLOCK)
    with rig_in(tmp_path, 16) as rig:
        seen = list[int]()
        watch_submits(rig, monkeypatch, seen)
        rig.stored(range(8))
        rig.loaded(range(8))
    assert seen == [2, 4, 2, 2, 4, 2]


def test_orders_beyond_the_first_are_sent_while_the_disk_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tier, "_SENT_AT_ONCE", 3)
    with rig_in(tmp_path, 16) as rig:
        rig.stored(range(8))
        sent = list[int]()
        send = rig.disk.send

        def watched(messages: Sequence[Message]) -> None:
            sent.append(len(messages))
            send(messages)

        monkeypatch.setattr(rig.disk, "send", watched)
        assert rig.loaded(range(8)) == {number: content_of(number) for number in range(8)}
    assert sent == [3, 3, 2]


def test_what_has_come_is_told_even_if_the_disk_can_be_asked_for_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_ios: Sequence[BlockIO]) -> None:
        raise OSError(errno.EBADF, "no ring")

    rig = Rig(request_for(tmp_path, capacity_for(8)), depth=1)
    rig.stored([1])
    rig.engine.fault(lambda _io: Keep())
    rig.begin_load([1])
    rig.engine.await_kept(1)
    rig.begin_store([2])
    monkeypatch.setattr(rig.engine, "submit", failing)
    rig.engine.release()
    rig.until_down()
    assert rig.arrived == {1: content_of(1)}
    assert rig.seen.stored == [key_of(1)]
    assert "the disk tier is off: OSError: [Errno 9] no ring; serving from memory" in rig.seen.notes
    rig.close()


def test_a_read_among_more_writes_than_would_be_begun_beside_it_changes_nothing_for_them(
    tmp_path: Path,
) -> None:
    with rig_in(tmp_path, 16) as rig:
        rig.stored([0])
        rig.engine.fault(lambda _io: Keep())
        rig.begin_store(range(1, 6))
        rig.engine.await_kept(5)
        rig.begin_load([0])
        rig.engine.await_kept(6)
        rig.engine.release()
        rig.quiet()
        assert rig.seen.notes == []
        assert rig.loaded(range(6)) == {number: content_of(number) for number in range(6)}


def test_what_was_under_way_while_the_index_was_written_is_not_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system may take seconds for the index; what has ended meanwhile is only not yet seen."""
    with rig_in(tmp_path, 16) as rig:
        record, begun = Store.record, threading.Event()

        def slow(store: Store, stored: Entries, emptied: Slots | tuple[()]) -> None:
            if not begun.is_set():
                begun.set()
                monkeypatch.setattr(rig.engine, "overdue", lambda _limit_s: list(unseen))
            record(store, stored, emptied)

        unseen = [object()]
        take = rig.engine.take_completions

        def seen(timeout_s: float) -> list[Completion]:
            found = take(timeout_s)
            if begun.is_set():
                unseen.clear()
            return found

        monkeypatch.setattr(Store, "record", slow)
        monkeypatch.setattr(rig.engine, "take_completions", seen)
        assert sorted(rig.stored(range(8))) == list(range(8))
        assert begun.is_set()
        assert rig.seen.notes == []


# ---- how much, and in which lots ----


@pytest.mark.parametrize(
    ("reads", "writes", "expected"),
    [(0, 0, 8), (0, 5, 3), (0, 8, 0), (1, 0, 2), (1, 1, 1), (1, 5, 0), (7, 0, 1), (8, 0, 0)],
)
def test_a_quarter_of_the_transfers_are_writes_while_something_is_read(
    reads: int, writes: int, expected: int
) -> None:
    assert writes_to_begin(8, reads, writes) == expected


def transfers(count: int, made: list[int]) -> Iterator[BlockIO]:
    for tag in range(count):
        made.append(tag)
        yield BlockIO(tag, write=False, descriptor=0, offset=0, memory=())


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
        BlockIO(tag, write=False, descriptor=0, offset=0, memory=(memory,))
        for tag, memory in enumerate(memories)
    ]
    memories[1].release()
    assert list(lots(iter(ios), 3)) == [ios]
