"""The limit that counts, in the layouts that containers and machines have."""

from pathlib import Path

import pytest

from kvtier_common.kernel import lowest_limit, meminfo_bytes

V2 = "hugetlb.2MB.max"
V1 = "hugetlb.2MB.limit_in_bytes"


def limit(tmp_path: Path, membership: str, files: dict[str, str]) -> int | None:
    proc, root = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text(membership)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return lowest_limit(controller="hugetlb", v1=V1, v2=V2, proc=proc, root=root)


@pytest.mark.parametrize(
    ("membership", "files", "expected"),
    [
        ("0::/\n", {V2: "4194304"}, 4194304),
        ("0::/\n", {V2: "max"}, None),
        ("0::/\n", {V2: "0"}, 0),
        ("0::/\n", {}, None),
        # the lowest of the own group and those above
        ("0::/a/b\n", {f"a/b/{V2}": "8", f"a/{V2}": "4", V2: "max"}, 4),
        # the host's path where only the own group is mounted
        ("0::/kubepods/pod1/c1\n", {V2: "2"}, 2),
        # both versions at once, as on a machine that keeps version 1 for most controllers
        ("4:memory:/x\n0::/y\n", {f"unified/y/{V2}": "6"}, 6),
        ("9:hugetlb:/pod\n0::/\n", {f"hugetlb/pod/{V1}": "2097152"}, 2097152),
        ("9:hugetlb:/\n", {f"hugetlb/{V1}": "9223372036854771712"}, None),
        ("9:cpu,hugetlb:/\n", {f"cpu,hugetlb/{V1}": "1"}, 1),
    ],
)
def test_lowest_limit(tmp_path: Path, membership: str, files: dict[str, str], expected: int | None) -> None:
    assert limit(tmp_path, membership, files) == expected


def test_memory_as_the_kernel_tells_it(tmp_path: Path) -> None:
    lines = ("MemTotal:       24687264 kB", "HugePages_Total:    5632", "Hugetlb:        11534336 kB", "")
    (tmp_path / "meminfo").write_text("\n".join(lines))
    assert meminfo_bytes(tmp_path) == {"MemTotal": 24_687_264 << 10, "Hugetlb": 11 << 30}
