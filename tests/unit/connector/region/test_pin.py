"""Locking on the real kernel: a child without root's rights meets the limit that a container would."""

import multiprocessing
import os
import resource
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from types import SimpleNamespace

import pytest

from kvtier_connector.config import MIB, Policy
from kvtier_connector.core.machine.memory import LockLimit
from kvtier_connector.core.region import pin, region
from kvtier_connector.core.region.pages import pieces_of
from kvtier_connector.core.region.report import SMALL, RegionReport
from kvtier_connector.errors import PinError

NOBODY = 65534


def small_pages(mib: int = 1) -> region.Slice:
    return region.alone(region.RegionRequest(1, mib * MIB, False, Policy.NEVER, 2 * MIB))  # noqa: FBT003


def locked(memory: region.Slice, policy: Policy) -> pin.PinReport:
    return pin.lock(memory, pieces_of(1, memory.size_bytes), pin.by_kernel(memory, policy))


def locked_kib() -> int:
    with open("/proc/self/status") as status:  # noqa: PTH123
        return next(int(line.split()[1]) for line in status if line.startswith("VmLck"))


def without_rights(task: Callable[[], str], limits: tuple[int, int] = (65536, 65536)) -> str:
    """Run `task` in a child that is nobody and may lock as much as `limits`, soft and hard."""

    def child(answer: Connection) -> None:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, limits)
        if os.geteuid() == 0:
            os.setresuid(NOBODY, NOBODY, NOBODY)
        answer.send(task())

    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=child, args=(send,))
    process.start()
    send.close()
    answer: str = receive.recv()
    process.join()
    return answer


def test_memory_is_really_locked() -> None:
    before = locked_kib()
    memory = small_pages()
    assert str(locked(memory, Policy.REQUIRE)) == "locked (mlock)"
    assert locked_kib() - before == 1024


def test_memory_that_the_kernel_only_says_is_locked_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pin, "_LIBC", SimpleNamespace(mlock=lambda _address, _size: 0))
    memory = small_pages()
    told = str(locked(memory, Policy.PREFER))
    assert told.startswith("not locked (asked Prefer: the kernel took mlock of 1.0 MiB, but /proc/self/s")
    with pytest.raises(PinError, match="memlock: Require, but the kernel took mlock of"):
        locked(memory, Policy.REQUIRE)


def test_other_memory_that_is_locked_does_not_vouch_for_the_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    other, memory = small_pages(4), small_pages()
    locked(other, Policy.REQUIRE)
    monkeypatch.setattr(pin, "_LIBC", SimpleNamespace(mlock=lambda _address, _size: 0))
    assert "/proc/self/smaps has locked 0.0 MiB" in str(locked(memory, Policy.PREFER))


def test_off_locks_nothing() -> None:
    before = locked_kib()
    memory = small_pages()
    assert str(locked(memory, Policy.NEVER)) == "not locked (memlock: Never)"
    assert locked_kib() == before


def test_prefer_says_which_limit_stood_in_the_way() -> None:
    told = without_rights(lambda: str(locked(small_pages(), Policy.PREFER)))
    assert told.startswith("not locked (asked Prefer: mlock of 1.0 MiB: ")
    assert told.endswith(
        "; 1.0 MiB needed, 0.1 MiB free of RLIMIT_MEMLOCK 0.1 MiB, CAP_IPC_LOCK is not effective)"
    )


def test_require_refuses_when_the_kernel_does() -> None:
    def refused() -> str:
        with pytest.raises(PinError) as caught:
            locked(small_pages(), Policy.REQUIRE)
        return str(caught.value)

    assert without_rights(refused).startswith("memlock: Require, but mlock of 1.0 MiB: ")


def test_a_soft_limit_is_raised_to_the_hard_one() -> None:
    told = without_rights(lambda: str(locked(small_pages(), Policy.REQUIRE)), limits=(65536, 4 * MIB))
    assert told == "locked (mlock)"


def test_preflight_refuses_before_anything_is_taken_and_prefer_goes_on() -> None:
    report = RegionReport(MIB, "", SMALL, "", 0.0)

    def refused() -> str:
        pin.preflight(report, MIB, Policy.PREFER)
        pin.preflight(report, 32 * 1024, Policy.REQUIRE)
        pin.preflight(replace(report, got="hugetlbfs 2 MiB"), MIB, Policy.REQUIRE)
        with pytest.raises(PinError) as caught:
            pin.preflight(report, MIB, Policy.REQUIRE)
        return str(caught.value)

    assert without_rights(refused).startswith(
        "memlock: Require, but 1.0 MiB needed, 0.1 MiB free of RLIMIT_MEMLOCK 0.1 MiB, CAP_IPC_LOCK is not "
        "effective; raise the limit (ulimit -l"
    )


def test_preflight_looks_at_the_memory_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    unlimited = LockLimit(None, None, 0, privileged=False, in_namespace=False)
    monkeypatch.setattr(pin, "lock_limit", lambda: unlimited)
    needed = r"memlock: Require, but 1048576\.00 GiB needed, \d+\.\d\d GiB free \(.+\); raise"
    with pytest.raises(PinError, match=needed):
        pin.preflight(RegionReport(0, "", SMALL, "", 0.0), 1 << 50, Policy.REQUIRE)


def test_hugetlbfs_pages_need_no_lock(hugepage_pool: Callable[[int], None]) -> None:
    hugepage_pool(1)
    memory = region.alone(region.RegionRequest(1, 2 * MIB, False, Policy.REQUIRE, 2 * MIB))  # noqa: FBT003
    assert locked(memory, Policy.REQUIRE) == pin.PinReport(
        Policy.REQUIRE, 2 * MIB, 2 * MIB, why="hugetlbfs pages are never swapped"
    )


def test_a_limit_that_is_reached_leaves_the_rest_unlocked() -> None:
    def told() -> str:
        memory = small_pages(4)
        pieces = pieces_of(4, MIB, most_bytes=MIB)
        return str(pin.lock(memory, pieces, pin.by_kernel(memory, Policy.PREFER)))

    assert without_rights(told, limits=(2 * MIB, 2 * MIB)).startswith(
        "2.0 MiB of 4.0 MiB locked (asked Prefer: mlock of 1.0 MiB: Cannot allocate memory; 1.0 MiB needed"
    )


def test_a_driver_registers_piece_by_piece() -> None:
    memory, pieces = small_pages(8), []
    pinning = pin.by_driver(Policy.REQUIRE, lambda address, size: pieces.append((address, size)))
    assert pin.lock(memory, pieces_of(8, MIB, most_bytes=3 * MIB), pinning).is_locked
    assert [(address - memory.address, size // MIB) for address, size in pieces] == [
        (0, 3),
        (3 * MIB, 3),
        (6 * MIB, 2),
    ]


def test_what_a_driver_refuses_ends_it_and_is_named() -> None:
    asked: list[int] = []

    def register_two(address: int, _size: int) -> str | None:
        asked.append(address)
        return "out of memory" if len(asked) > 2 else None

    memory = small_pages(8)
    report = pin.lock(memory, pieces_of(8, MIB, most_bytes=MIB), pin.by_driver(Policy.PREFER, register_two))
    assert len(asked) == 3
    assert str(report) == (
        "2.0 MiB of 8.0 MiB locked (asked Prefer: registering 1.0 MiB for DMA: out of memory)"
    )


def test_require_refuses_when_the_driver_does() -> None:
    pinning = pin.by_driver(Policy.REQUIRE, lambda _address, _size: "no such device")
    with pytest.raises(PinError, match=r"memlock: Require, but registering 1\.0 MiB for DMA: no such"):
        pin.lock(small_pages(), pieces_of(1, MIB), pinning)
