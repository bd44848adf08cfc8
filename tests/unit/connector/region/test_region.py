"""The ladder on the real kernel. Reserves a few huge pages, and puts the pool back."""

import ctypes
import mmap
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kvtier_connector.config import GIB, MIB, Policy
from kvtier_connector.core.region import pages, region
from kvtier_connector.core.region.pages import transparent_obstacle
from kvtier_connector.core.region.region import RegionRequest
from kvtier_connector.core.region.report import SMALL
from kvtier_connector.errors import RegionError

V2_MOUNTS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
PROVIDE = Callable[[int], None]
WRITER = """
import ctypes, sys
from kvtier_connector.core.region import region
from kvtier_connector.core.region.report import RegionReport
report = RegionReport(0, "", "", "", 0.0)
piece = region.attach(region.RegionHandle(sys.argv[1], int(sys.argv[2]), report), 1)
ctypes.memset(piece.address, 0xAB, piece.size_bytes)
"""

DISK = """
import os, sys
from kvtier_connector.core.region import region
from kvtier_connector.core.region.report import RegionReport
path, slice_bytes, block = sys.argv[1], int(sys.argv[2]), sys.argv[3]
whole = region.open_whole(region.RegionHandle(path, slice_bytes, RegionReport(0, "", "", "", 0.0)))
assert whole.nbytes == 2 * slice_bytes
descriptor = os.open(block, os.O_RDWR | os.O_CREAT | os.O_DIRECT)
assert os.pwritev(descriptor, [whole[slice_bytes : slice_bytes + (1 << 20)]], 0) == 1 << 20
assert os.preadv(descriptor, [whole[1 << 20 : 2 << 20]], 0) == 1 << 20
"""

LIMITED = """
import sys
from pathlib import Path
from kvtier_connector.config import Policy
from kvtier_connector.core.region import region
from kvtier_connector.errors import RegionError
Path(sys.argv[1], "cgroup.procs").write_text("0")
for policy in (Policy.PREFER, Policy.REQUIRE):
    try:
        handle, descriptor = region.create(region.RegionRequest(1, 8 << 20, True, policy, 2 << 20))
        print(region.attach(handle, 0).report)
    except RegionError as error:
        print(error)
"""


def request(
    *, mib: int = 8, policy: Policy = Policy.PREFER, slices: int = 1, page: int = 2 * MIB
) -> RegionRequest:
    return RegionRequest(slices, mib * MIB, slices > 1, policy, page)


def resident_kib() -> int:
    """Return what this process has brought in, on ordinary and on huge pages."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return sum(int(fields[name].split()[0]) for name in ("VmRSS", "HugetlbPages"))


@pytest.fixture
def hugetlb_group(hugepage_pool: PROVIDE) -> Iterator[Path]:
    """A control group that may have 3 pages of the 16 that are free."""
    hugepage_pool(16)
    mounts = [mount for mount in V2_MOUNTS if has_hugetlb(mount)]
    if not mounts:
        pytest.skip("this kernel has no hugetlb controller of version 2")
    (mounts[0] / "cgroup.subtree_control").write_text("+hugetlb")
    group = mounts[0] / f"kvtier-test-{os.getpid()}"
    group.mkdir()
    try:
        (group / "hugetlb.2MB.max").write_text(str(6 * MIB))
        yield group
    finally:
        group.rmdir()


def has_hugetlb(mount: Path) -> bool:
    controllers = mount / "cgroup.controllers"
    return controllers.is_file() and "hugetlb" in controllers.read_text().split()


def usable(memory: region.Slice) -> bool:
    ctypes.memset(memory.address, 7, memory.size_bytes)
    return ctypes.string_at(memory.address + memory.size_bytes - 1, 1) == b"\x07"


def test_require_gets_hugetlbfs_pages(hugepage_pool: PROVIDE) -> None:
    hugepage_pool(4)
    memory = region.alone(request(policy=Policy.REQUIRE))
    assert memory.report.on_hugetlbfs
    assert str(memory.report) == "region 8.0 MiB on hugetlbfs 2 MiB (asked hugetlbfs 2 MiB)"
    assert usable(memory)


def test_require_refuses_an_exhausted_pool_with_the_numbers_and_keeps_none(hugepage_pool: PROVIDE) -> None:
    hugepage_pool(3)
    with pytest.raises(RegionError, match="Require, but hugetlbfs 2 MiB: 3 of 4 pages free"):
        region.create(request(policy=Policy.REQUIRE))
    assert region.alone(request(mib=6, policy=Policy.REQUIRE)).report.on_hugetlbfs


def test_pages_that_others_have_reserved_are_not_free(hugepage_pool: PROVIDE) -> None:
    hugepage_pool(6)
    descriptor, reserved = pages.reserved_hugetlb(6 * MIB, 2 * MIB)
    with reserved, pytest.raises(RegionError, match="Require, but hugetlbfs 2 MiB: 3 of 4 pages free"):
        region.create(request(policy=Policy.REQUIRE))
    os.close(descriptor)


def test_prefer_falls_back_and_says_why(hugepage_pool: PROVIDE) -> None:
    hugepage_pool(0)
    memory = region.alone(request(policy=Policy.PREFER))
    assert not memory.report.on_hugetlbfs
    assert "(asked hugetlbfs 2 MiB: 0 of 4 pages free" in str(memory.report)
    assert usable(memory)


def test_a_page_size_that_the_kernel_lacks_is_said(hugepage_pool: PROVIDE) -> None:
    hugepage_pool(0)
    with pytest.raises(RegionError, match=r"hugetlbfs 1 GiB: (0 of 1 pages free|this kernel has no pages)"):
        region.create(request(policy=Policy.REQUIRE, page=GIB))


@pytest.mark.parametrize("slices", [1, 2])
def test_off_takes_small_pages_without_excuse(slices: int) -> None:
    memory = region.alone(request(policy=Policy.NEVER, slices=slices))
    assert (memory.report.got, memory.report.asked, memory.report.why) == (SMALL, SMALL, "")
    assert usable(memory)


def test_transparent_huge_pages_are_reported_only_where_the_kernel_gave_them(hugepage_pool: PROVIDE) -> None:
    hugepage_pool(0)
    report = region.alone(request(mib=32)).report
    obstacle = transparent_obstacle(shared=False)
    assert (obstacle in report.why) if obstacle else ("transparent" in report.got or "no more" in report.why)


def test_ranks_in_other_processes_share_the_region_and_nothing_has_a_name() -> None:
    handle, descriptor = region.create(request(mib=2, policy=Policy.NEVER, slices=2))
    assert Path(handle.path).stat().st_nlink == 0
    first, second = region.attach(handle, 0), region.attach(handle, 1)
    command = [sys.executable, "-c", WRITER, handle.path, str(handle.slice_bytes)]
    subprocess.run(command, check=True)  # noqa: S603 - our own interpreter
    os.close(descriptor)
    assert ctypes.string_at(second.address, second.size_bytes) == b"\xab" * second.size_bytes
    assert ctypes.string_at(first.address, first.size_bytes) == bytes(first.size_bytes)


def test_a_control_group_below_the_pool_is_an_error_with_numbers_and_no_signal(hugetlb_group: Path) -> None:
    command = [sys.executable, "-c", LIMITED, str(hugetlb_group)]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - our own interpreter
    assert ended.returncode == 0, ended.stderr
    preferred, required = ended.stdout.splitlines()
    why = f"4 pages refused although 16 are free: hugetlb.2MB.max of control group {hugetlb_group} leaves 3"
    assert preferred.startswith("region 8.0 MiB on ")
    assert f"(asked hugetlbfs 2 MiB: {why}" in preferred
    assert required.startswith(f"hugepages: Require, but hugetlbfs 2 MiB: {why}; reserve them")


def test_memory_that_is_not_there_is_an_error_and_no_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    handle, descriptor = region.create(request(mib=2, policy=Policy.NEVER, slices=2))
    mapped = region._map

    def and_gone(path: str, size_bytes: int, offset: int) -> mmap.mmap:
        memory = mapped(path, size_bytes, offset)
        os.ftruncate(descriptor, 0)  # from here, a touch would raise SIGBUS
        return memory

    with monkeypatch.context() as patched:
        patched.setattr(region, "_map", and_gone)
        with pytest.raises(RegionError, match=r"refused memory for a slice of 2\.0 MiB: Bad address"):
            region.attach(handle, 1)
    with pytest.raises(RegionError, match=r"the region at .* cannot be mapped: mmap length is greater"):
        region.attach(handle, 1)
    os.close(descriptor)


def test_one_more_process_maps_the_whole_region_in_place(tmp_path: Path) -> None:
    handle, descriptor = region.create(request(mib=2, policy=Policy.NEVER, slices=2))
    first, second = region.attach(handle, 0), region.attach(handle, 1)
    ctypes.memset(second.address, 0x5C, second.size_bytes)
    block = tmp_path / "block"
    arguments = (handle.path, str(handle.slice_bytes), str(block))
    subprocess.run([sys.executable, "-c", DISK, *arguments], check=True)  # noqa: S603 - our own interpreter
    os.close(descriptor)
    assert block.read_bytes() == b"\x5c" * MIB
    assert ctypes.string_at(first.address + MIB, MIB) == b"\x5c" * MIB


@pytest.mark.parametrize("policy", [Policy.NEVER, Policy.REQUIRE])
def test_mapping_the_whole_takes_no_memory(policy: Policy, hugepage_pool: PROVIDE) -> None:
    hugepage_pool(4)
    handle, descriptor = region.create(request(mib=4, policy=policy, slices=2))
    before = resident_kib()
    whole = region.open_whole(handle)
    os.close(descriptor)
    assert whole.nbytes == 2 * handle.slice_bytes
    assert resident_kib() - before < 1024
    whole[-1] = 7
    assert bytes(whole[-2:]) == b"\0\x07"


def test_a_region_of_one_process_has_no_whole_for_others() -> None:
    handle, _ = region.create(request(mib=2, policy=Policy.NEVER))
    with pytest.raises(RegionError, match="one process's own memory; make it with shared=True"):
        region.open_whole(handle)


def test_a_region_whose_creator_let_go_of_it_is_said_to_be_gone() -> None:
    handle, descriptor = region.create(request(mib=2, policy=Policy.NEVER, slices=2))
    os.close(descriptor)
    for reach in (region.open_whole, lambda handle: region.attach(handle, 0)):
        with pytest.raises(RegionError, match=r"cannot be opened at /proc/\d+/fd/\d+: No such file"):
            reach(handle)


def test_more_than_the_machine_has_is_refused_before_anything_is_taken() -> None:
    total = int(Path("/proc/meminfo").read_text().split()[1]) * 1024
    with pytest.raises(RegionError, match=r"cpu_capacity_bytes: the region needs .*, but .* leaves .* GiB"):
        region.create(request(mib=2 * total // MIB, policy=Policy.NEVER))


def test_a_slice_is_rounded_up_to_whole_pages() -> None:
    odd = RegionRequest(2, 5 * MIB + 1, True, Policy.PREFER, 2 * MIB)  # noqa: FBT003
    assert odd.round_up().slice_bytes == 6 * MIB
