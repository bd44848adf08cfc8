"""What an index may grow to follows the pod's memory limit."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvtier_scorer.index.memory import allowed_bytes

GIB = 1 << 30
PHYSICAL = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
WITHIN = """
import os, sys
from pathlib import Path
Path(sys.argv[1], "cgroup.procs").write_text(str(os.getpid()))
from kvtier_scorer.index.memory import reserve_slots
print(reserve_slots(None).nbytes)
"""


@pytest.mark.parametrize(
    ("membership", "file", "limit", "expected"),
    [
        ("0::/pod\n", "pod/memory.max", GIB, GIB // 2),
        ("0::/host/path/of/pod\n", "memory.max", GIB, GIB // 2),
        ("5:memory:/pod\n", "memory/pod/memory.limit_in_bytes", GIB, GIB // 2),
        ("0::/pod\n", "pod/memory.max", "max", PHYSICAL),
        ("0::/pod\n", "pod/memory.max", 4 * PHYSICAL, PHYSICAL),
    ],
)
def test_it_is_half_of_the_limit_or_what_the_machine_has(
    tmp_path: Path, membership: str, file: str, limit: object, expected: int
) -> None:
    proc, cgroup = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text(membership)
    (cgroup / file).parent.mkdir(parents=True, exist_ok=True)
    (cgroup / file).write_text(f"{limit}\n")
    assert allowed_bytes(proc, cgroup) == expected


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group of 512 MiB."""
    for root, name in (("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")):
        folder = Path(root) / f"kvtier-test-{os.getpid()}"
        if not (Path(root) / "cgroup.procs").exists():
            continue
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            if (folder / name).exists() and os.access(folder / name, os.W_OK):
                (folder / name).write_text(str(GIB // 2))
                yield folder
                return
        finally:
            folder.rmdir()
    pytest.skip("no control group can be made here")


def test_a_process_in_a_control_group_reserves_half_of_it(group: Path) -> None:
    out = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", WITHIN, group], check=True, capture_output=True, text=True
    ).stdout
    assert GIB // 4 - (1 << 22) < int(out) <= GIB // 4
