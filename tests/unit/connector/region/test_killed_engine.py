"""What an engine that is killed leaves of its region: nothing."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.shared.hugepages import free_pages

from kvtier_connector.config import MIB, Policy

PROVIDE = Callable[[int], None]
KEEPER = """
import ctypes, os, sys, time
from kvtier_connector.config import Policy
from kvtier_connector.core.region import pin, region
request = region.RegionRequest(2, int(sys.argv[2]), True, Policy(sys.argv[1]), 2 << 20)
handle, descriptor = region.create(request)
if os.fork() == 0:
    held = region.attach(handle, 1)
else:
    held = region.attach(handle, 0)
    whole = region.open_whole(handle)
ctypes.memset(held.address, 1, held.size_bytes)
status = os.fstat(descriptor)
os.write(1, f"{os.getpid()} {status.st_ino} {status.st_nlink}\\n".encode())
time.sleep(600)
"""


@contextmanager
def two_that_are_killed(policy: Policy, slice_bytes: int) -> Iterator[tuple[int, int]]:
    """Give the inode and number of names of a region that two processes have; then end both by SIGKILL."""
    command = [sys.executable, "-c", KEEPER, policy, str(slice_bytes)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as keeper:  # noqa: S603 - our own interpreter
        assert keeper.stdout
        said = [[int(word) for word in keeper.stdout.readline().split()] for _ in range(2)]
        ends = [os.pidfd_open(pid) for pid, _, _ in said]
        try:
            yield said[0][1], said[0][2]
        finally:
            os.killpg(keeper.pid, signal.SIGKILL)
            for descriptor in ends:
                select.select([descriptor], [], [])
                os.close(descriptor)


def test_a_killed_engine_gives_its_huge_pages_back(hugepage_pool: PROVIDE) -> None:
    hugepage_pool(8)
    with two_that_are_killed(Policy.REQUIRE, 6 * MIB) as (inode, names):
        assert (free_pages(), len(users(inode)), names) == (2, 2, 0)
    assert free_pages() == 8


def test_a_killed_engine_leaves_nothing_that_holds_its_memory() -> None:
    with two_that_are_killed(Policy.NEVER, 2 * MIB) as (inode, names):
        assert (len(users(inode)), names) == (2, 0)
    assert users(inode) == set()


def users(inode: int) -> set[int]:
    """Return the processes that have a memfd of this package mapped or open."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            opened = [entry.stat().st_ino for entry in (process / "fd").iterdir() if is_ours(entry)]
            maps = (process / "maps").read_text().splitlines()
            mapped = [int(line.split()[4]) for line in maps if "/memfd:kvtier " in line]
            if inode in opened + mapped:
                found.add(int(process.name))
    return found


def is_ours(entry: Path) -> bool:
    return str(entry.readlink()).startswith("/memfd:kvtier ")
