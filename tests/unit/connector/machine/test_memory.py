from pathlib import Path

import pytest

from kvtier_connector.config import GIB, MIB
from kvtier_connector.core.machine.memory import (
    LockLimit,
    MemoryBound,
    format_bytes,
    hugetlb_bound,
    lock_limit,
    tightest_bound,
)


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


IPC_LOCK = 1 << 14
FIRST = "0 0 4294967295"


@pytest.mark.parametrize(
    ("effective", "uid_map", "privileged", "in_namespace"),
    [
        (IPC_LOCK, FIRST, True, False),
        (IPC_LOCK - 1, FIRST, False, False),
        (IPC_LOCK, "0 100000 65536", False, True),
    ],
)
def test_the_capability_counts_in_the_first_user_namespace_only(
    effective: int,
    uid_map: str,
    privileged: bool,
    in_namespace: bool,
    tmp_path: Path,
) -> None:
    (tmp_path / "status").write_text(f"Name:\ta:b\nVmLck:\t    2048 kB\nCapEff:\t{effective:016x}\n")
    (tmp_path / "uid_map").write_text(f"         {uid_map}\n")
    limit = lock_limit(tmp_path)
    assert (limit.locked_bytes, limit.privileged, limit.in_namespace) == (2 * MIB, privileged, in_namespace)


@pytest.mark.parametrize(
    ("limit", "allowed"),
    [
        (LockLimit(MIB, 4 * MIB, 0, False, False), 4 * MIB),  # noqa: FBT003
        (LockLimit(MIB, 4 * MIB, 3 * MIB, False, False), MIB),  # noqa: FBT003
    ],
)
def test_what_is_locked_already_counts(limit: LockLimit, allowed: int) -> None:
    assert limit.allows(allowed)
    assert not limit.allows(allowed + 1)


def test_no_limit_and_a_capability_allow_everything() -> None:
    assert LockLimit(MIB, MIB, 0, True, False).allows(1 << 50)  # noqa: FBT003
    assert LockLimit(None, None, 0, False, False).allows(1 << 50)  # noqa: FBT003


def test_the_limit_for_people() -> None:
    free = LockLimit(8 * MIB, 8 * MIB, 2 * MIB, False, True)  # noqa: FBT003
    assert str(free) == (
        "6.0 MiB free of RLIMIT_MEMLOCK 8.0 MiB, CAP_IPC_LOCK is not effective (not in a user namespace)"
    )
    unlimited = LockLimit(None, None, 0, True, False)  # noqa: FBT003
    assert str(unlimited) == "RLIMIT_MEMLOCK is unlimited, CAP_IPC_LOCK is effective"
