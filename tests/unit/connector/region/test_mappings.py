"""Ranges in what the kernel prints, and in what it prints of this process."""

import ctypes
import mmap
from pathlib import Path

import pytest

from kvtier_connector.config import MIB, Policy
from kvtier_connector.core.region import region
from kvtier_connector.core.region.report import RangeState, bytes_on_nodes, range_state

SMAPS = """\
10000000-10400000 rw-p 00000000 00:00 0
Size:               4096 kB
Rss:                4096 kB
AnonHugePages:      2048 kB
Locked:             2048 kB
VmFlags: rd wr mr mw me lo ac dd
10400000-10600000 rw-s 00000000 00:01 7    /memfd:kvtier (deleted)
Size:               2048 kB
Rss:                1024 kB
ShmemPmdMapped:        0 kB
VmFlags: rd wr sh mr mw me ms dd
20000000-20001000 r--p 00000000 00:00 0
Size:                  4 kB
Rss:                   4 kB
VmFlags: rd mr mw me lo
"""
NUMA_MAPS = """\
10000000 default anon=1024 dirty=1024 N0=768 N1=256 kernelpagesize_kB=4
10400000 default file=/memfd:kvtier\\040(deleted) huge dirty=1 N1=1 kernelpagesize_kB=2048
20000000 default file=/usr/lib/N7=9 mapped=1 N0=1 kernelpagesize_kB=4
"""


@pytest.mark.parametrize(
    ("first", "mib", "state"),
    [
        (0x10000000, 4, RangeState(4 * MIB, 2 * MIB, 4 * MIB)),
        (0x10000000, 6, RangeState(5 * MIB, 2 * MIB, 4 * MIB)),
        (0x10400000, 2, RangeState(MIB, 0, 0)),
        (0x10300000, 1, RangeState(MIB, MIB, MIB)),
        (0x10600000, 8, RangeState(0, 0, 0)),
    ],
)
def test_a_range_is_what_its_mappings_are(tmp_path: Path, first: int, mib: int, state: RangeState) -> None:
    (tmp_path / "smaps").write_text(SMAPS)
    assert range_state(first, mib * MIB, tmp_path / "smaps") == state


def test_nodes_are_counted_in_pages_of_the_mapping(tmp_path: Path) -> None:
    (tmp_path / "numa_maps").write_text(NUMA_MAPS)
    assert bytes_on_nodes(0x10000000, 6 * MIB, tmp_path / "numa_maps") == {0: 3 * MIB, 1: 3 * MIB}
    assert bytes_on_nodes(0x20000000, MIB, tmp_path / "numa_maps") == {0: 4096}
    assert bytes_on_nodes(0x10000000, MIB, tmp_path / "no such file") == {}


def test_only_what_was_touched_is_resident() -> None:
    with mmap.mmap(-1, 4 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        ctypes.memset(address, 1, MIB)
        assert range_state(address, 4 * MIB) == RangeState(MIB, 0, 0)


@pytest.mark.parametrize("shared", [False, True])
def test_prompts_are_not_in_core_dumps(shared: bool) -> None:
    memory = region.alone(region.RegionRequest(1, MIB, shared, Policy.NEVER, 2 * MIB))
    start = f"{memory.address:x}-"
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    assert any(line.startswith(start) for line in lines)
    assert "dd" in next(line for line in lines if line.startswith("VmFlags:")).split()
