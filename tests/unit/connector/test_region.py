"""The ladder on the real kernel. Reserves a few huge pages, and puts the pool back."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kvtier_connector.config import GIB, MIB, Policy
from kvtier_connector.core import region
from kvtier_connector.core.pages import transparent_obstacle
from kvtier_connector.core.region import SMALL, RegionRequest
from kvtier_connector.errors import RegionError

SHM = Path("/dev/shm")  # noqa: S108 - it is what must stay as it is
PROVIDE = Callable[[int], None]
WRITER = """
import ctypes, sys
from kvtier_connector.core import region
report = region.RegionReport(0, "", "", "", 0.0)
piece = region.attach(region.RegionHandle(sys.argv[1], int(sys.argv[2]), report), 1)
ctypes.memset(piece.address, 0xAB, piece.size_bytes)
"""


def request(
    *, mib: int = 8, policy: Policy = Policy.PREFER, slices: int = 1, page: int = 2 * MIB
) -> RegionRequest:
    return RegionRequest(slices, mib * MIB, slices > 1, policy, page)


def made(asked: RegionRequest) -> region.Slice:
    handle, descriptor = region.create(asked)
    try:
        return region.attach(handle, 0)
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def usable(memory: region.Slice) -> bool:
    ctypes.memset(memory.address, 7, memory.size_bytes)
    return ctypes.string_at(memory.address + memory.size_bytes - 1, 1) == b"\x07"


def test_require_gets_hugetlbfs_pages(hugepage_pool: PROVIDE) -> None:
    hugepage_pool(4)
    memory = made(request(policy=Policy.REQUIRE))
    assert memory.report.on_hugetlbfs
    assert str(memory.report) == "region 8.0 MiB on hugetlbfs 2 MiB (asked hugetlbfs 2 MiB)"
    assert usable(memory)


def test_require_refuses_an_exhausted_pool_with_the_numbers_and_keeps_none(hugepage_pool: PROVIDE) -> None:
    hugepage_pool(3)
    with pytest.raises(RegionError, match="Require, but hugetlbfs 2 MiB: 3 of 4 pages free"):
        region.create(request(policy=Policy.REQUIRE))
    assert made(request(mib=6, policy=Policy.REQUIRE)).report.on_hugetlbfs


def test_prefer_falls_back_and_says_why(hugepage_pool: PROVIDE) -> None:
    hugepage_pool(0)
    memory = made(request(policy=Policy.PREFER))
    assert not memory.report.on_hugetlbfs
    assert "(asked hugetlbfs 2 MiB: 0 of 4 pages free" in str(memory.report)
    assert usable(memory)


def test_a_page_size_that_the_kernel_lacks_is_said(hugepage_pool: PROVIDE) -> None:
    hugepage_pool(0)
    with pytest.raises(RegionError, match=r"hugetlbfs 1 GiB: (0 of 1 pages free|this kernel has no pages)"):
        region.create(request(policy=Policy.REQUIRE, page=GIB))


@pytest.mark.parametrize("slices", [1, 2])
def test_off_takes_small_pages_without_excuse(slices: int) -> None:
    memory = made(request(policy=Policy.OFF, slices=slices))
    assert (memory.report.got, memory.report.asked, memory.report.why) == (SMALL, SMALL, "")
    assert usable(memory)


def test_transparent_huge_pages_are_reported_only_where_the_kernel_gave_them(hugepage_pool: PROVIDE) -> None:
    hugepage_pool(0)
    report = made(request(mib=32)).report
    obstacle = transparent_obstacle(shared=False)
    assert (obstacle in report.why) if obstacle else ("transparent" in report.got or "no more" in report.why)


def test_ranks_in_other_processes_share_the_region_and_nothing_has_a_name() -> None:
    names = set(SHM.iterdir())
    handle, descriptor = region.create(request(mib=2, policy=Policy.OFF, slices=2))
    first, second = region.attach(handle, 0), region.attach(handle, 1)
    command = [sys.executable, "-c", WRITER, handle.path, str(handle.slice_bytes)]
    subprocess.run(command, check=True)  # noqa: S603 - our own interpreter
    os.close(descriptor)
    assert ctypes.string_at(second.address, second.size_bytes) == b"\xab" * second.size_bytes
    assert ctypes.string_at(first.address, first.size_bytes) == bytes(first.size_bytes)
    assert set(SHM.iterdir()) == names


def test_more_than_the_machine_has_is_refused_before_anything_is_taken() -> None:
    total = int(Path("/proc/meminfo").read_text().split()[1]) * 1024
    with pytest.raises(RegionError, match=r"cpu_capacity_bytes: the region needs .*, but .* leaves .* GiB"):
        region.create(request(mib=2 * total // MIB, policy=Policy.OFF))


def test_a_slice_is_rounded_up_to_whole_pages() -> None:
    odd = RegionRequest(2, 5 * MIB + 1, True, Policy.PREFER, 2 * MIB)  # noqa: FBT003
    assert odd.rounded().slice_bytes == 6 * MIB
