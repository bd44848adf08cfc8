"""The disk tier's index on disk: whatever is done to the file, what is read was once written."""

import os
import random
import signal
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.connector.disk.rig.tier_files import open_journal, write_journal

from kvtier_connector.core.disk.files.journal import Entries, Recovered, Shape
from kvtier_connector.errors import DiskError, UnsafeFolderError

SHAPE = Shape(key_bytes=36, slots=16, namespace=0x1234)
State = list[tuple[int, bytes, int]]


def entries(*blocks: tuple[int, int]) -> Entries:
    """Blocks, each a slot and a number from which its key and checksum follow."""
    keys = b"".join(number.to_bytes(SHAPE.key_bytes, "big") for _, number in blocks)
    return Entries(
        np.array([slot for slot, _ in blocks], np.int32),
        np.frombuffer(keys, np.uint8).reshape(-1, SHAPE.key_bytes),
        np.array([number << 40 for _, number in blocks], np.uint64),
    )


def state(found: Entries) -> State:
    return [
        (slot, key.tobytes(), checksum)
        for slot, key, checksum in zip(
            found.slots.tolist(), found.keys, found.checksums.tolist(), strict=True
        )
    ]


def slots(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array(numbers, np.int32)


def opened(path: Path, shape: Shape = SHAPE) -> Recovered:
    journal, recovered = open_journal(path, shape)
    journal.close()
    return recovered


def filled(path: Path) -> list[State]:
    """Write five frames; returns what is to be read after none, one, ... of them."""
    journal = write_journal(path, SHAPE, [entries((3, 1), (4, 2))])
    journal.append(entries((5, 3)), ())
    journal.append(entries((3, 4), (6, 5)), slots(4))
    journal.append(entries(), slots(5, 6))
    journal.append(entries((4, 6)), ())
    journal.close()
    return [
        [],
        state(entries((3, 1), (4, 2))),
        state(entries((3, 1), (4, 2), (5, 3))),
        state(entries((5, 3), (3, 4), (6, 5))),
        state(entries((3, 4))),
        state(entries((3, 4), (4, 6))),
    ]


def test_what_was_written_is_read_again_in_the_order_of_writing(tmp_path: Path) -> None:
    path = tmp_path / "index"
    last = filled(path)[-1]
    recovered = opened(path)
    assert (state(recovered.entries), recovered.lost_bytes) == (last, 0)
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_reader_written_from_the_document_agrees(tmp_path: Path) -> None:
    def check(data: bytes, seed: int = 0) -> int:
        return xxhash.xxh3_64_intdigest(data, seed)

    path = tmp_path / "index"
    last = filled(path)[-1]
    data = path.read_bytes()
    magic, key_bytes, slot_count, namespace, nonce, header_check = struct.unpack("<8sIIQQQ", data[:40])
    assert (magic, key_bytes, slot_count, namespace) == (b"kvtier\0\1", 36, 16, 0x1234)
    assert header_check == check(data[:32])
    found: dict[int, tuple[int, bytes, int]] = {}
    start = 40
    while start < len(data):
        (records,) = struct.unpack_from("<Q", data, start)
        end = start + 8 + records * (16 + key_bytes)
        assert struct.unpack_from("<Q", data, end) == (
            check(data[start:end], check(struct.pack("<Q", start), nonce)),
        )
        for at in range(start + 8, end, 16 + key_bytes):
            slot, holds, checksum = struct.unpack_from("<IIQ", data, at)
            found.pop(slot, None)
            if holds:
                found[slot] = (slot, data[at + 16 : at + 16 + key_bytes], checksum)
        start = end + 8
    assert list(found.values()) == last


@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 15), max_size=5, unique=True),
            st.lists(st.integers(0, 15), max_size=5, unique=True),
            st.sampled_from(["go on", "open again", "write anew"]),
        ),
        max_size=12,
    )
)
def test_it_agrees_with_a_dictionary(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[list[int], list[int], str]]
) -> None:
    path = tmp_path_factory.mktemp("journal") / "index"
    journal, _ = open_journal(path, SHAPE)
    kept: dict[int, int] = {}
    number = 0
    for stored, emptied, then in steps:
        blocks = [(slot, number := number + 1) for slot in stored]
        journal.append(entries(*blocks), slots(*emptied))
        for slot in emptied:
            kept.pop(slot, None)
        for slot, of in blocks:
            kept.pop(slot, None)
            kept[slot] = of
        if then != "go on":
            journal.close()
            journal, recovered = open_journal(path, SHAPE)
            assert state(recovered.entries) == state(entries(*kept.items()))
        if then == "write anew":
            journal.close()
            journal = write_journal(path, SHAPE, [recovered.entries])
    journal.close()
    assert state(opened(path).entries) == state(entries(*kept.items()))


def test_cut_at_every_byte_it_holds_the_frames_before_the_cut(tmp_path: Path) -> None:
    path = tmp_path / "index"
    states = filled(path)
    content = path.read_bytes()
    seen = []
    for cut in range(len(content)):
        path.write_bytes(content[:cut])
        recovered = opened(path)
        seen.append(states.index(state(recovered.entries)))
        assert state(opened(path).entries) == states[seen[-1]]
        assert cut - recovered.lost_bytes <= path.stat().st_size
    assert seen == sorted(seen)
    assert set(seen) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("bits_of_a_byte", [1, pytest.param(8, marks=pytest.mark.long)])
def test_with_any_bit_flipped_it_holds_what_was_once_written(tmp_path: Path, bits_of_a_byte: int) -> None:
    path = tmp_path / "index"
    states = filled(path)
    content = path.read_bytes()
    chosen = random.Random(0)  # noqa: S311 - a sample
    for place in range(len(content)):
        for bit in chosen.sample(range(8), bits_of_a_byte):
            damaged = bytearray(content)
            damaged[place] ^= 1 << bit
            path.write_bytes(damaged)
            recovered = opened(path)
            assert state(recovered.entries) in states[:-1], (place, bit)
            assert recovered.lost_bytes > 0


def test_after_damage_it_goes_on_from_what_it_still_believes(tmp_path: Path) -> None:
    path = tmp_path / "index"
    states = filled(path)
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    journal, recovered = open_journal(path, SHAPE)
    assert state(recovered.entries) == states[-2]
    journal.append(entries((9, 9)), ())
    journal.close()
    assert state(opened(path).entries) == [*states[-2], *state(entries((9, 9)))]


def test_a_frame_of_another_file_or_place_is_not_believed(tmp_path: Path) -> None:
    one, other = tmp_path / "one" / "index", tmp_path / "other" / "index"
    states = filled(one)
    filled(other)
    content = one.read_bytes()
    start = write_journal(tmp_path / "empty" / "index", SHAPE).size_bytes
    one.write_bytes(other.read_bytes()[:start] + content[start:])
    assert state(opened(one).entries) == []
    one.write_bytes(content + content[start:])
    recovered = opened(one)
    assert (state(recovered.entries), recovered.lost_bytes) == (states[-1], len(content) - start)


@pytest.mark.parametrize(
    "shape",
    [Shape(32, 16, 0x1234), Shape(36, 16, 0x1235)],
    ids=["key length", "namespace"],
)
def test_a_journal_of_other_keys_or_meaning_is_begun_anew(tmp_path: Path, shape: Shape) -> None:
    path = tmp_path / "index"
    filled(path)
    size = path.stat().st_size
    recovered = opened(path, shape)
    assert (len(recovered.entries), recovered.lost_bytes) == (0, size)
    assert opened(path, shape).lost_bytes == 0


@pytest.mark.parametrize("slots", [2, 4, 15, 17, 1000])
def test_what_fits_another_number_of_slots_is_kept(tmp_path: Path, slots: int) -> None:
    path = tmp_path / "index"
    kept = [entry for entry in filled(path)[-1] if entry[0] < slots]
    for _ in range(2):
        assert state(opened(path, Shape(36, slots, 0x1234)).entries) == kept


def test_a_write_that_fails_halfway_leaves_it_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "index"
    states = filled(path)
    journal, _ = open_journal(path, SHAPE)
    size, write = path.stat().st_size, os.pwrite
    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", lambda file, data, at: write(file, data[:20], at))
        with pytest.raises(DiskError, match=r"index: 20 of \d+ bytes were written"):
            journal.append(entries((8, 8)), ())
        with pytest.raises(DiskError, match="bytes were written"):
            write_journal(path, SHAPE, [entries((1, 1))])
    assert path.stat().st_size == journal.size_bytes == size
    assert list(tmp_path.iterdir()) == [path]
    journal.append(entries((8, 8)), ())
    journal.close()
    assert state(opened(path).entries) == [*states[-1], *state(entries((8, 8)))]


def test_a_folder_in_its_place_is_named(tmp_path: Path) -> None:
    path = tmp_path / "index"
    path.mkdir()
    with pytest.raises(
        UnsafeFolderError, match=f"^disk_path: {path} is a folder, which the tier did not make"
    ):
        open_journal(path, SHAPE)


WRITER = """
import sys
from pathlib import Path
from tests.unit.connector.disk.files.test_journal import SHAPE, entries, slots
from tests.unit.connector.disk.rig.tier_files import open_journal
journal, _ = open_journal(Path(sys.argv[1]), SHAPE)
number = 0
while True:
    number += 1
    journal.append(entries((number % 16, number)), slots((number + 8) % 16))
    print(number, flush=True)
"""


@pytest.mark.parametrize("frames", [1, 2000])
def test_a_killed_writer_loses_at_most_the_frame_it_was_writing(tmp_path: Path, frames: int) -> None:
    path = tmp_path / "index"
    with subprocess.Popen(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout
        for line in writer.stdout:
            if int(line) == frames:
                writer.send_signal(signal.SIGKILL)
                break
        last = max((int(line) for line in writer.stdout), default=frames)  # written until the signal came
    found = state(opened(path).entries)
    newest = found[-1][2] >> 40
    assert newest in (last, last + 1)
    assert found == state(
        entries(*((number % 16, number) for number in range(max(1, newest - 7), newest + 1)))
    )
