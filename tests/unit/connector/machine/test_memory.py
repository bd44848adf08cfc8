from pathlib import Path

import pytest

from kvtier_connector.config import GIB, MIB
from kvtier_connector.core.machine.memory import MemoryBound, format_bytes, hugetlb_bound, tightest_bound


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    folder = tmp_path / "proc"
    (folder / "self").mkdir(parents=True)
    (folder / "meminfo").write_text("MemTotal:  9000000 kB\nMemAvailable:    8388608 kB\n")
    (folder / "self/cgroup").write_text("0::/\n")
    return folder


def group(folder: Path, files: dict[str, object]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (folder / name).write_text(f"{value}\n")


def test_without_limits_the_machine_is_the_bound(proc: Path, tmp_path: Path) -> None:
    group(tmp_path / "cg", {"memory.max": "max", "memory.current": 5, "memory.stat": "inactive_file 0"})
    bound = tightest_bound(proc, tmp_path / "cg")
    assert (bound.available_bytes, bound.source) == (8 * GIB, "MemAvailable of /proc/meminfo")


def test_a_version_2_group_counts_clean_page_cache_as_free(proc: Path, tmp_path: Path) -> None:
    files = {"memory.max": 4 * GIB, "memory.current": 3 * GIB, "memory.stat": f"anon 1\ninactive_file {GIB}"}
    group(tmp_path / "cg", files)
    bound = tightest_bound(proc, tmp_path / "cg")
    assert bound.available_bytes == 2 * GIB
    assert bound.source == f"memory.max of control group {tmp_path / 'cg'}"


def test_a_version_1_group_above_counts_too(proc: Path, tmp_path: Path) -> None:
    (proc / "self/cgroup").write_text("5:cpu,memory:/pod/container\n1:name=systemd:/\n")
    root = tmp_path / "cg/memory"
    wide = {
        "memory.limit_in_bytes": 1 << 62,
        "memory.usage_in_bytes": 0,
        "memory.stat": "total_inactive_file 0",
    }
    group(root, wide)
    group(root / "pod", wide | {"memory.limit_in_bytes": GIB, "memory.usage_in_bytes": GIB // 2})
    group(root / "pod/container", wide)
    assert tightest_bound(proc, tmp_path / "cg").available_bytes == GIB // 2


def test_a_group_that_is_slowed_down_beyond_a_limit_is_bound_by_it(proc: Path, tmp_path: Path) -> None:
    files = {"memory.max": 4 * GIB, "memory.high": 2 * GIB, "memory.current": GIB, "memory.stat": "anon 1"}
    group(tmp_path / "cg", files)
    bound = tightest_bound(proc, tmp_path / "cg")
    assert (bound.available_bytes, bound.source) == (GIB, f"memory.high of control group {tmp_path / 'cg'}")


def test_version_2_beside_version_1_is_found_below_unified(proc: Path, tmp_path: Path) -> None:
    (proc / "self/cgroup").write_text("4:memory:/\n0::/pod\n")
    group(tmp_path / "cg/unified/pod", {"hugetlb.2MB.max": 6 * MIB, "hugetlb.2MB.current": 2 * MIB})
    bound = hugetlb_bound(2 * MIB, proc, tmp_path / "cg")
    assert bound == MemoryBound(4 * MIB, f"hugetlb.2MB.max of control group {tmp_path / 'cg/unified/pod'}")


@pytest.mark.parametrize(
    ("cgroup", "folder", "files", "source", "left"),
    [
        (
            "0::/",
            "",
            {"hugetlb.1GB.max": 8 * GIB, "hugetlb.1GB.current": 0, "hugetlb.1GB.rsvd.max": 2 * GIB}
            | {"hugetlb.1GB.rsvd.current": GIB},
            "hugetlb.1GB.rsvd.max",
            GIB,
        ),
        (
            "7:hugetlb:/a",
            "hugetlb/a",
            {"hugetlb.1GB.limit_in_bytes": 3 * GIB, "hugetlb.1GB.usage_in_bytes": GIB},
            "hugetlb.1GB.limit_in_bytes",
            2 * GIB,
        ),
    ],
)
def test_a_groups_huge_pages_are_bounded(  # noqa: PLR0913, PLR0917 - a row of the table and two folders
    cgroup: str, folder: str, files: dict[str, object], source: str, left: int, proc: Path, tmp_path: Path
) -> None:
    (proc / "self/cgroup").write_text(f"{cgroup}\n")
    group(tmp_path / "cg" / folder, files)
    bound = hugetlb_bound(GIB, proc, tmp_path / "cg")
    assert bound == MemoryBound(left, f"{source} of control group {tmp_path / 'cg' / folder}")
    assert hugetlb_bound(2 * MIB, proc, tmp_path / "cg") is None


def test_this_machine_has_a_bound() -> None:
    assert tightest_bound().available_bytes > 0


@pytest.mark.parametrize(("count", "text"), [(GIB, "1.00 GiB"), (3 * MIB, "3.0 MiB"), (0, "0.0 MiB")])
def test_bytes_for_people(count: int, text: str) -> None:
    assert format_bytes(count) == text
