import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.node.doctor.conftest import Examine

from kvtier_operator.planning.pod.demands import Demands

MIB = 1 << 20


@pytest.fixture
def memory_group() -> Iterator[Path]:
    """A control group with 256 MiB, which is more than a doctor needs."""
    v1, v2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
    group = (v1 if v1.is_dir() else v2) / f"kvtier-test-{os.getpid()}"
    group.mkdir()
    limit = "memory.limit_in_bytes" if v1.is_dir() else "memory.max"
    try:
        (group / limit).write_text(str(256 * MIB))
        yield group
    finally:
        group.rmdir()


def test_the_control_group_s_limit(examine: Examine, memory_group: Path) -> None:
    inside = ("sh", "-c", f'echo $$ > {memory_group}/cgroup.procs && exec "$@"', "sh")
    assert examine(Demands(256 * MIB, 0), *inside).status == 0
    found = examine(Demands(257 * MIB, 0), *inside)
    assert found.status == 1
    assert found.message.startswith(
        "memory: 257 MiB needed, 256 MiB allowed (the control group's limit); see what lowers"
    )
