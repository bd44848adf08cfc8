from pathlib import Path

import pytest

from kvtier_connector.config import MIB
from kvtier_connector.core.machine.memory import LockLimit, lock_limit

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
