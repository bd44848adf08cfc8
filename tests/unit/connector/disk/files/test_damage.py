"""Whatever is done to the files, a block is loaded as it was stored or not at all."""

import itertools
import mmap
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
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
from tests.unit.connector.disk.rig.faulty_engine import SOON_S
from tests.unit.connector.disk.rig.rig import found_by_the_next, rig_in
from tests.unit.connector.disk.rig.tier_files import copied, journal, segment, write_journal

from kvtier_connector.core.behind.messages import Ended, Order
from kvtier_connector.core.disk.files.fingerprint import Fingerprint, bound_checksum, fingerprint
from kvtier_connector.core.disk.files.journal import Entries
from kvtier_connector.core.disk.files.store import Store
from kvtier_connector.core.disk.io.choose import open_engine
from kvtier_connector.core.disk.transfers.loop import DiskLoop, DiskThread
from kvtier_connector.errors import CorruptBlockError

SLOTS = 4
OTHER = fingerprint({"model": "another"})


@dataclass
class Reader:
    """Reads slots by their keys through the thread, which forgets nothing of what it finds."""

    store: Store
    disk: DiskThread

    def __post_init__(self) -> None:
        self._memory = memoryview(mmap.mmap(-1, SLOTS * BLOCK))

    def read(self, key_in: dict[int, bytes]) -> dict[int, bytes | Exception]:
        """Return the bytes of each slot, or why there are none."""
        orders = [
            Order(False, self.store.generation, key, slot, slot, (self._part(slot),))  # noqa: FBT003 - a read
            for slot, key in key_in.items()
        ]
        self.disk.send(orders)
        found = dict[int, bytes | Exception]()
        while len(found) < len(orders):
            assert self.disk.wait(SOON_S)
            for event in self.disk.take_events():
                assert isinstance(event, Ended), event
                slot = event.order.slot
                found[slot] = event.error or bytes(self._part(slot))
        return found

    def _part(self, slot: int) -> memoryview:
        return self._memory[slot * BLOCK : (slot + 1) * BLOCK]


@contextmanager
def reader_of(path: Path, meaning: Fingerprint = MEANING) -> Iterator[Reader]:
    store = Store.open(request_for(path, capacity_for(SLOTS), meaning=meaning))
    disk = DiskThread(DiskLoop(store, lambda: pytest.fail("it went down"), open_engine(SLOTS)[0], SOON_S))
    try:
        yield Reader(store, disk)
    finally:
        disk.close(SOON_S)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A folder with four blocks."""
    path = tmp_path / "tier"
    with rig_in(path, SLOTS) as rig:
        assert rig.stored(range(SLOTS)) == list(range(SLOTS))
    return path


@dataclass
class Tally:
    """What was done, and what came of it."""

    what: str
    damages: int = 0
    detected: int = 0
    wrong: int = 0

    def add(self, found: bytes | Exception | None, right: bytes) -> None:
        """Count a block that was damaged."""
        self.damages += 1
        self.detected += found is None or isinstance(found, CorruptBlockError)
        self.wrong += isinstance(found, bytes) and found != right

    def check(self) -> None:
        print(f"{self.what}: {self.damages} damages, {self.detected} detected, {self.wrong} wrong")  # noqa: T201 - figures, seen with -s
        assert self.damages == self.detected > 0
        assert self.wrong == 0


def test_every_byte_of_every_block(path: Path) -> None:
    tally = Tally("bytes flipped")
    with reader_of(path) as reader, segment(path).open("r+b", buffering=0) as file:
        slots, keys = reader.store.index.rows(0, SLOTS)
        key_in = {slot: key.tobytes() for slot, key in zip(slots.tolist(), keys, strict=True)}
        right = {slot: content_of(number_of(key)) for slot, key in key_in.items()}
        assert reader.read(key_in) == right
        for place in range(BLOCK):
            for slot in key_in:
                flipped = right[slot][place] ^ (1 << (place + slot) % 8)
                os.pwrite(file.fileno(), bytes([flipped]), slot * BLOCK + place)
            for slot, found in reader.read(key_in).items():
                tally.add(found, right[slot])
                os.pwrite(file.fileno(), right[slot][place : place + 1], slot * BLOCK + place)
        assert reader.read(key_in) == right
    assert tally.damages == SLOTS * BLOCK
    tally.check()


def test_every_truncation(path: Path) -> None:
    tally = Tally("truncations")
    whole = segment(path).read_bytes()
    steps = range(0, SLOTS * BLOCK, 512)
    odd = (1, 511, 513, BLOCK - 1, BLOCK + 1, 2 * BLOCK - 1, 2 * BLOCK + 1, 4 * BLOCK - 1, 4 * BLOCK - 2)
    for length in (*steps, *odd):
        segment(path).write_bytes(whole)
        os.truncate(segment(path), length)
        with reader_of(path) as reader:
            slots, keys = reader.store.index.rows(0, SLOTS)
            key_in = {slot: key.tobytes() for slot, key in zip(slots.tolist(), keys, strict=True)}
            assert len(key_in) == SLOTS
            for slot, found in reader.read(key_in).items():
                right = content_of(number_of(key_in[slot]))
                if (slot + 1) * BLOCK > length:
                    tally.add(found, right)
                else:
                    assert found == right
    tally.check()


def test_a_segment_that_is_cut_off_while_it_is_open(path: Path) -> None:
    with rig_in(path, SLOTS) as rig:
        os.truncate(segment(path), 2 * BLOCK + 100)
        slots, keys = rig.store.index.rows(0, SLOTS)
        kept = [number_of(key.tobytes()) for slot, key in zip(slots.tolist(), keys, strict=True) if slot < 2]
        assert rig.loaded(range(SLOTS)) == {number: content_of(number) for number in kept}
        assert rig.tier.take_counts().failed == 2  # it ended short


def test_every_swap_of_two_blocks(path: Path) -> None:
    tally = Tally("blocks swapped")
    whole = segment(path).read_bytes()
    blocks = [whole[start : start + BLOCK] for start in range(0, len(whole), BLOCK)]
    with reader_of(path) as reader:
        slots, keys = reader.store.index.rows(0, SLOTS)
        key_in = {slot: key.tobytes() for slot, key in zip(slots.tolist(), keys, strict=True)}
        for order in itertools.permutations(range(SLOTS)):
            segment(path).write_bytes(b"".join(blocks[slot] for slot in order))
            for slot, found in reader.read(key_in).items():
                if order[slot] == slot:
                    assert found == blocks[slot]
                else:
                    tally.add(found, blocks[slot])
    tally.check()


def test_blocks_of_another_key_or_namespace(path: Path) -> None:
    """Undamaged bytes with a checksum that is right for them, but under the name of others."""
    tally = Tally("blocks of others")
    with reader_of(path) as reader:
        slots, keys = reader.store.index.rows(0, SLOTS)
    shape = request_for(path, capacity_for(SLOTS)).shape
    numbers = [number_of(key.tobytes()) for key in keys]
    for namespace, shift in itertools.product((MEANING.number, OTHER.number), range(SLOTS)):
        if namespace == MEANING.number and not shift:
            continue
        checksums = [bound_checksum(namespace, key_of(number), content_of(number)) for number in numbers]
        claimed = np.roll(keys, shift, axis=0)
        write_journal(journal(path), shape, [Entries(slots, claimed, np.array(checksums, np.uint64))]).close()
        with reader_of(path) as reader:
            key_in = {slot: key.tobytes() for slot, key in zip(slots.tolist(), claimed, strict=True)}
            for slot, found in reader.read(key_in).items():
                tally.add(found, content_of(number_of(key_in[slot])))
    tally.check()


def test_a_namespace_under_the_name_of_another(path: Path) -> None:
    tally = Tally("namespaces renamed")
    (path / MEANING.folder).rename(path / OTHER.folder)
    with reader_of(path, OTHER) as reader:
        for number in range(SLOTS):
            held = reader.store.index.state(key_of(number))
            tally.add(None if not held else b"held", content_of(number))
    tally.check()


def test_a_stale_index(path: Path) -> None:
    """An old index put back: what it says of slots that have been given away since is never believed."""
    tally = Tally("blocks of a stale index")
    stale = list[tuple[bytes, dict[int, int]]]()
    for start in range(0, 40, 2):
        with rig_in(path, SLOTS) as rig:
            rig.stored(range(start, start + 3))
            slots, keys = rig.store.index.rows(0, SLOTS)
            said = dict(zip(slots.tolist(), (number_of(key.tobytes()) for key in keys), strict=True))
        stale.append((journal(path).read_bytes(), said))
    last = stale[-1][1]
    for index, said in stale:
        journal(path).write_bytes(index)
        found = found_by_the_next(path, SLOTS)
        for slot, number in said.items():
            if last[slot] == number:
                assert found[number] == content_of(number)
            else:
                tally.add(found.get(number), content_of(number))
    tally.check()


@pytest.mark.parametrize(
    "what", ["deleted", "empty", "of another namespace", "of the same namespace elsewhere", "of other slots"]
)
def test_an_index_that_is_not_this_folders(path: Path, tmp_path: Path, what: str) -> None:
    tally = Tally(f"index {what}")
    elsewhere = tmp_path / "elsewhere"
    shape = request_for(path, capacity_for(SLOTS)).shape
    match what:
        case "deleted":
            journal(path).unlink()
        case "empty":
            journal(path).write_bytes(b"")
        case "of another namespace":
            with reader_of(elsewhere, OTHER) as reader:
                shutil.copy(reader.store.folder / "index", journal(path))
        case "of the same namespace elsewhere":
            with rig_in(elsewhere, SLOTS) as rig:
                rig.stored([3, 2, 1, 0])
            shutil.copy(journal(elsewhere), journal(path))
        case _:
            slots, keys = np.arange(SLOTS, dtype=np.int32), [key_of(9 + n) for n in range(SLOTS)]
            packed = np.frombuffer(b"".join(keys), np.uint8).reshape(SLOTS, KEY_BYTES)
            write_journal(journal(path), shape, [Entries(slots, packed, slots.astype(np.uint64))]).close()
    found = found_by_the_next(path, SLOTS)
    for number in range(SLOTS):
        tally.damages += 1
        tally.detected += number not in found or found[number] == content_of(number)
        tally.wrong += found.get(number, content_of(number)) != content_of(number)
    assert set(found) <= set(range(SLOTS))
    tally.check()


def test_a_lock_that_is_deleted_changes_nothing(path: Path) -> None:
    (path / "lock").unlink()
    assert found_by_the_next(path, SLOTS) == {number: content_of(number) for number in range(SLOTS)}


def test_a_folder_that_was_copied_is_as_good_as_the_first(path: Path) -> None:
    assert found_by_the_next(copied(path, "copy"), SLOTS) == {
        number: content_of(number) for number in range(SLOTS)
    }
