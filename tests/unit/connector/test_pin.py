"""Locking on the real kernel: a child without root's rights meets the limit that a container would."""

import multiprocessing
import os
import resource
from collections.abc import Callable
from multiprocessing.connection import Connection

import pytest

from kvtier_connector.config import MIB, Policy
from kvtier_connector.core import pin, region
from kvtier_connector.errors import PinError

NOBODY = 65534


def small_pages(mib: int = 1) -> region.Slice:
    handle, _ = region.create(region.RegionRequest(1, mib * MIB, False, Policy.OFF, 2 * MIB))  # noqa: FBT003
    return region.attach(handle, 0)


def locked_kib() -> int:
    with open("/proc/self/status") as status:  # noqa: PTH123
        return next(int(line.split()[1]) for line in status if line.startswith("VmLck"))


def without_rights(task: Callable[[], str]) -> str:
    """Run `task` in a child that is nobody and may lock 64 KiB."""

    def child(answer: Connection) -> None:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
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
    assert str(pin.lock(memory, Policy.REQUIRE)) == "locked (mlock)"
    assert locked_kib() - before == 1024


def test_off_locks_nothing() -> None:
    before = locked_kib()
    memory = small_pages()
    assert str(pin.lock(memory, Policy.OFF)) == "not locked (memlock: Off)"
    assert locked_kib() == before


def test_prefer_says_which_limit_stood_in_the_way() -> None:
    told = without_rights(lambda: str(pin.lock(small_pages(), Policy.PREFER)))
    assert told.startswith("not locked (mlock of 1.0 MiB: ")
    assert "RLIMIT_MEMLOCK is 0.1 MiB and CAP_IPC_LOCK is not effective" in told


def test_require_refuses_when_the_kernel_does() -> None:
    def refused() -> str:
        with pytest.raises(PinError) as caught:
            pin.lock(small_pages(), Policy.REQUIRE)
        return str(caught.value)

    assert without_rights(refused).startswith("memlock: Require, but mlock of 1.0 MiB: ")


def test_hugetlbfs_pages_need_no_lock(hugepage_pool: Callable[[int], None]) -> None:
    hugepage_pool(1)
    handle, descriptor = region.create(region.RegionRequest(1, 2 * MIB, False, Policy.REQUIRE, 2 * MIB))  # noqa: FBT003
    memory = region.attach(handle, 0)
    os.close(descriptor)
    assert pin.lock(memory, Policy.REQUIRE) == pin.PinReport(
        locked=True, why="hugetlbfs pages are never swapped"
    )


def test_a_driver_registers_all_of_it_in_bounded_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pin, "REGISTER_PIECE_BYTES", 3 * MIB)
    memory, pieces = small_pages(8), []
    report = pin.register(memory, Policy.REQUIRE, lambda address, size: pieces.append((address, size)))
    assert report.locked
    assert [(address - memory.address, size // MIB) for address, size in pieces] == [
        (0, 3),
        (3 * MIB, 3),
        (6 * MIB, 2),
    ]


def test_a_driver_that_refuses_is_named() -> None:
    memory = small_pages()
    refuse = pin.register(memory, Policy.PREFER, lambda _address, _size: "no such device")
    assert str(refuse) == "not locked (registering 1.0 MiB for DMA: no such device)"
    with pytest.raises(PinError, match=r"memlock: Require, but registering 1\.0 MiB for DMA: no such"):
        pin.register(memory, Policy.REQUIRE, lambda _address, _size: "no such device")
