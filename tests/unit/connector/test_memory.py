from pathlib import Path

import pytest

from kvtier_connector.config import GIB, MIB
from kvtier_connector.core.memory import format_bytes, tightest_bound


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


def test_this_machine_has_a_bound() -> None:
    assert tightest_bound().available_bytes > 0


@pytest.mark.parametrize(("count", "text"), [(GIB, "1.00 GiB"), (3 * MIB, "3.0 MiB"), (0, "0.0 MiB")])
def test_bytes_for_people(count: int, text: str) -> None:
    assert format_bytes(count) == text
