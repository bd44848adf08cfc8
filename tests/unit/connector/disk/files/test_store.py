"""The disk tier's files as a whole: what they may take, whose they are, and what goes with what."""

import os
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.shared.disk_usage import taken_bytes
from tests.unit.connector.disk.rig.blocks import (
    BLOCK,
    KEY_BYTES,
    MEANING,
    capacity_for,
    content_of,
    key_of,
    number_of,
    request_for,
)
from tests.unit.connector.disk.rig.rig import IMPATIENT, found_by_the_next, rig_in
from tests.unit.connector.disk.rig.tier_files import journal, segment

from kvtier_connector import config as config_module
from kvtier_connector.config import DISK_INDEX_SIZES
from kvtier_connector.core.disk.files import store as store_module
from kvtier_connector.core.disk.files.fingerprint import fingerprint
from kvtier_connector.core.disk.files.journal import Entries
from kvtier_connector.core.disk.files.store import Store
from kvtier_connector.errors import DiskError, FolderInUseError, SettingError


def entries(store: Store, *numbers: int) -> Entries:
    """Blocks of these numbers, each in the slot of its number."""
    keys = b"".join(map(key_of, numbers))
    return Entries(
        np.array([number % store.shape.slots for number in numbers], np.int32),
        np.frombuffer(keys, np.uint8).reshape(-1, KEY_BYTES),
        np.array(numbers, np.uint64),
    )


def restored(store: Store) -> dict[int, int]:
    """The numbers of the blocks that an index was filled with, and their slots."""
    slots, keys = store.index.rows(0, store.shape.slots)
    return dict(zip((number_of(key.tobytes()) for key in keys), slots.tolist(), strict=True))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tier"


def test_a_capacity_that_holds_no_block_is_refused(path: Path) -> None:
    capacity_bytes = capacity_for(1)
    assert request_for(path, capacity_bytes).shape.slots == 1
    with pytest.raises(
        SettingError, match=r"^disk_capacity_bytes: .* do not hold one chunk of .* and its index; give"
    ):
        Store.open(request_for(path, capacity_bytes - 1))
    assert not path.exists()


def test_the_files_are_the_owners_alone(path: Path) -> None:
    store = Store.open(request_for(path, capacity_for(4)))
    store.compact(store.shape.nothing)
    assert {file.name for file in store.folder.iterdir()} == {"blocks-000000", "index", "fingerprint"}
    for each in (path, *path.rglob("*")):
        assert each.stat().st_mode & 0o777 == (0o700 if each.is_dir() else 0o600), each
    assert (store.folder / "fingerprint").read_text() == MEANING.text
    store.close()


def test_what_was_recorded_is_there_at_the_next_start(path: Path) -> None:
    request = request_for(path, capacity_for(8))
    store = Store.open(request)
    assert [store.checksum(slot) for slot in range(3)] == [None] * 3
    store.record(entries(store, 1, 2, 5), ())
    assert (store.checksum(1), store.checksum(5), store.checksum(0)) == (1, 5, None)
    store.record(entries(store, 10), np.array([5], np.int32))  # 10 lies where 2 was
    store.begin_overwrite(1)
    assert (store.checksum(1), store.checksum(2), store.checksum(5)) == (None, 10, None)
    store.close()
    store = Store.open(request)
    assert restored(store) == {1: 1, 10: 2}
    assert (store.restored, store.checksum(2), store.checksum(5)) == (2, 10, None)
    store.clear()
    assert store.checksum(2) is None
    store.record(entries(store, 3), ())
    assert store.checksum(3) == 3
    store.close()
    store = Store.open(request)
    assert store.restored == 0
    store.close()


def test_a_compacted_journal_says_the_same(path: Path) -> None:
    request = request_for(path, capacity_for(8))
    store = Store.open(request)
    store.record(entries(store, *range(8)), ())
    store.index.reserve([key_of(number) for number in range(8)])
    store.index.commit([key_of(number) for number in range(7)])  # the owner has not been told of the last yet
    at = {number: number_of(key.tobytes()) for number, key in enumerate(store.index.rows(0, 8)[1])}
    assert at == {number: number for number in range(7)}
    before = journal(path).stat().st_size
    store.begin_overwrite(3)  # its bytes are about to change
    store.compact(entries(store, 7))
    assert journal(path).stat().st_size < before
    store.close()
    store = Store.open(request)
    assert restored(store) == {number: number for number in range(8) if number != 3}
    store.close()


def test_a_capacity_that_changes_keeps_what_fits(path: Path) -> None:
    store = Store.open(request_for(path, capacity_for(8)))
    store.record(entries(store, *range(8)), ())
    store.close()
    store = Store.open(request_for(path, capacity_for(5)))
    assert sorted(restored(store)) == list(range(5))
    store.close()
    store = Store.open(request_for(path, capacity_for(20)))
    assert sorted(restored(store)) == list(range(5))
    store.close()


def test_a_second_engine_is_refused_and_the_first_not_disturbed(path: Path) -> None:
    request = request_for(path, capacity_for(4))
    store = Store.open(request)
    store.record(entries(store, 1), ())
    other = fingerprint({"model": "another"})
    with pytest.raises(FolderInUseError, match="is in use by an engine under test"):
        Store.open(request_for(path, capacity_for(4), meaning=other))
    store.record(entries(store, 2), ())
    store.close()
    store = Store.open(request)
    assert sorted(restored(store)) == [1, 2]
    store.close()


def test_an_opening_that_fails_leaves_the_folder_free(path: Path) -> None:
    request = request_for(path, capacity_for(4))
    Store.open(request).close()
    (path / MEANING.folder / "fingerprint").unlink()
    (path / MEANING.folder / "fingerprint").mkdir()
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(DiskError, match="fingerprint is a folder, which the tier did not make"):
        Store.open(request)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    (path / MEANING.folder / "fingerprint").rmdir()
    Store.open(request).close()


def test_namespaces_of_others_go_and_nothing_else_does(path: Path, tmp_path: Path) -> None:
    for number in range(3):
        meaning = fingerprint({"model": number})
        Store.open(request_for(path, capacity_for(4), meaning=meaning)).close()
        assert [path.name for path in path.iterdir() if path.is_dir()] == [meaning.folder]
    (path / "0123456789abcdef").mkdir()  # nothing in it yet: its engine was killed
    (path / "fedcba9876543210").mkdir()
    (path / "fedcba9876543210" / "thesis.tex").touch()
    (path / "aaaaaaaaaaaaaaaa").mkdir()
    (path / "aaaaaaaaaaaaaaaa" / "index").mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "index").touch()
    (path / "bbbbbbbbbbbbbbbb").symlink_to(outside)
    (path / "cccccccccccccccc").write_text("a file")
    (path / "replica-1").mkdir()
    (path / "photos").mkdir()
    (path / "notes.txt").touch()
    Store.open(request_for(path, capacity_for(4))).close()
    left = {
        "fedcba9876543210",
        "aaaaaaaaaaaaaaaa",
        "bbbbbbbbbbbbbbbb",
        "cccccccccccccccc",
        "replica-1",
        "photos",
        "notes.txt",
    }
    assert {path.name for path in path.iterdir()} == {*left, MEANING.folder, "lock"}
    assert (path / "fedcba9876543210" / "thesis.tex").exists()
    assert (outside / "index").exists()


# ---- the bound ----


@pytest.fixture
def at_every_flush(monkeypatch: pytest.MonkeyPatch, path: Path) -> Iterator[list[int]]:
    """What the folder takes whenever a new journal is complete beside the old one."""
    seen, flush = list[int](), os.fsync

    def measured(descriptor: int) -> None:
        seen.append(taken_bytes(path))
        flush(descriptor)

    monkeypatch.setattr("kvtier_connector.core.disk.files.journal.os.fsync", measured)
    yield seen
    monkeypatch.undo()


@pytest.mark.parametrize("slots", [1, 7, 300, 5000])
def test_the_files_never_take_more_than_the_capacity(
    path: Path, slots: int, at_every_flush: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (store_module, config_module):
        monkeypatch.setattr(module, "DISK_SPARE_BYTES", 64 << 10)
    request = request_for(path, capacity_for(slots))
    chance = random.Random(slots)  # noqa: S311 - to be the same again
    store = Store.open(request)
    assert store.shape.slots == slots
    numbers = list(range(slots))
    store.index.restore(entries(store, *numbers).keys, entries(store, *numbers).slots)
    store.record(entries(store, *numbers), ())  # as an owner who has been told of all of them
    compactions, most = 0, 0
    while compactions < 4:
        some = [chance.randrange(slots) for _ in range(chance.randrange(1, 9))]
        some = list(dict.fromkeys(some))
        if chance.random() < 0.1:
            store.record(store.shape.nothing, np.array(some, np.int32))
        else:
            store.record(entries(store, *some), ())
        if store.journal_is_full:
            most = max(most, taken_bytes(path))
            store.compact(store.shape.nothing)
            compactions += 1
    store.close()
    assert max(most, *at_every_flush) <= request.capacity_bytes
    print(f"{slots} slots: at most {max(most, *at_every_flush)} of {request.capacity_bytes} bytes")  # noqa: T201 - figures, seen with -s


def test_slots_written_out_of_order_stay_within_the_capacity(path: Path) -> None:
    """A file system notes every part of a file that was written, and counts what it needs for that."""
    slots = 8192
    request = request_for(path, capacity_for(slots))
    store = Store.open(request)
    allocated = taken_bytes(path)
    for slot in range(0, slots, 2):
        place = store.segments.place(slot)
        os.pwrite(place.descriptor, b"x" * BLOCK, place.offset)
    os.fsync(store.segments.place(0).descriptor)
    written = taken_bytes(path)
    store.close()
    print(f"{slots} slots: {written - allocated} bytes more than allocated")  # noqa: T201 - figures, seen with -s
    assert written <= request.capacity_bytes - (DISK_INDEX_SIZES * slots * 52)


def test_an_engine_that_evicts_and_forgets_stays_within_the_capacity(
    path: Path, at_every_flush: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (store_module, config_module):
        monkeypatch.setattr(module, "DISK_SPARE_BYTES", 48 << 10)
    timings = replace(IMPATIENT, check_s=3600.0, look_s=3600.0)  # what is left is what has to be
    with rig_in(path, 24, timings=timings) as rig:
        capacity_bytes = rig.request.capacity_bytes
        at_every_flush.clear()
        most, numbers = 0, iter(range(1_000_000))
        while len(at_every_flush) < 5:
            rig.begin_store([next(numbers) for _ in range(16)])
            rig.quiet()
            most = max(most, taken_bytes(path))
            last = next(numbers)
            if rig.stored([last]) and last % 5 == 0:
                with segment(path).open("r+b") as file:
                    file.write(bytes(rig.store.shape.slots * BLOCK))
                rig.loaded([last])
        held = {number for number in range(last + 1) if rig.tier.holds(key_of(number))}
        assert max(most, *at_every_flush) <= capacity_bytes
    found = found_by_the_next(path, 24)
    assert found == {number: content_of(number) for number in found}
    assert found
    assert found.keys() <= held
