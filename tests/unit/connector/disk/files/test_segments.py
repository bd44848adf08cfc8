"""The segment files: bounded from the start, and what was in them stays when the tier is resized."""

import fcntl
import mmap
import os
from pathlib import Path

import pytest
from tests.unit.connector.disk.rig.tier_files import directory

from kvtier_connector.config import DISK_ALIGNMENT_BYTES
from kvtier_connector.core.disk.files.segments import Segments
from kvtier_connector.errors import DiskError

SLOT = 2 * DISK_ALIGNMENT_BYTES
PER_SEGMENT = 3


def opened(folder: Path, slots: int, *, direct: bool = True) -> Segments:
    with directory(folder) as within:
        return Segments.open(
            within, slot_bytes=SLOT, slots=slots, direct=direct, segment_bytes=PER_SEGMENT * SLOT + 100
        )


def aligned(byte: int) -> mmap.mmap:
    block = mmap.mmap(-1, SLOT)  # whole pages, as O_DIRECT wants
    block.write(bytes([byte]) * SLOT)
    return block


def fill(segments: Segments, slots: int) -> None:
    for slot in range(slots):
        place = segments.place(slot)
        assert os.pwrite(place.descriptor, aligned(slot + 1), place.offset) == SLOT


def read(segments: Segments, slot: int) -> set[int]:
    block, place = aligned(0), segments.place(slot)
    assert os.preadv(place.descriptor, [block], place.offset) == SLOT
    return set(block[:])


def test_every_slot_has_its_own_bytes_and_no_more_are_taken(tmp_path: Path) -> None:
    segments = opened(tmp_path, 8)
    files = sorted(tmp_path.iterdir())
    assert [file.stat().st_size // SLOT for file in files] == [3, 3, 2]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert all(file.stat().st_blocks * 512 >= file.stat().st_size for file in files)
    fill(segments, 8)
    segments.close()
    again = opened(tmp_path, 8)
    assert [read(again, slot) for slot in range(8)] == [{slot + 1} for slot in range(8)]
    assert sorted(tmp_path.iterdir()) == files
    again.close()


@pytest.mark.parametrize("direct", [True, False])
def test_the_page_cache_is_passed_by_where_it_can_be(tmp_path: Path, *, direct: bool) -> None:
    (tmp_path / "probe").touch()
    try:
        os.close(os.open(tmp_path / "probe", os.O_RDWR | os.O_DIRECT))
    except OSError:
        able = False
    else:
        able = True
    segments = opened(tmp_path, 4, direct=direct)
    flags = {fcntl.fcntl(segments.place(slot).descriptor, fcntl.F_GETFL) & os.O_DIRECT for slot in range(4)}
    assert segments.direct == (direct and able)
    assert flags == {os.O_DIRECT if segments.direct else 0}
    segments.close()


def test_a_larger_tier_keeps_its_blocks_and_a_smaller_one_gives_space_back(tmp_path: Path) -> None:
    segments = opened(tmp_path, 4)
    fill(segments, 4)
    segments.close()
    segments = opened(tmp_path, 11)
    assert [read(segments, slot) for slot in range(4)] == [{1}, {2}, {3}, {4}]
    segments.close()
    segments = opened(tmp_path, 2)
    assert [read(segments, slot) for slot in range(2)] == [{1}, {2}]
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) == 2 * SLOT
    segments.close()


def test_what_does_not_fit_is_refused_before_anything_is_taken(tmp_path: Path) -> None:
    with pytest.raises(DiskError, match=r"disk_capacity_bytes: [\d.]+ GiB do not fit .* lower it or name"):
        opened(tmp_path, 1 << 40)
    assert list(tmp_path.iterdir()) == []


def test_a_failure_halfway_leaves_what_was_there_before(tmp_path: Path) -> None:
    segments = opened(tmp_path, 3)
    fill(segments, 3)
    segments.close()
    (tmp_path / "blocks-000002").mkdir()
    with pytest.raises(DiskError, match="blocks-000002 is a folder, which the tier did not make"):
        opened(tmp_path, 9)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["blocks-000000", "blocks-000002"]
    (tmp_path / "blocks-000002").rmdir()
    segments = opened(tmp_path, 9)
    assert [read(segments, slot) for slot in range(3)] == [{1}, {2}, {3}]
    segments.close()


def test_a_slot_that_is_not_aligned_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="multiple of 4096"), directory(tmp_path) as folder:
        Segments.open(folder, slot_bytes=5000, slots=1, direct=True)
