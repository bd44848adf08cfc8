"""The machine's pool of 2 MiB pages, for tests that set it."""

import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.shared.waiting import eventually

POOL = Path("/proc/sys/vm/nr_hugepages")
"""What it is set to. Who puts it back takes this: the next file counts pages, too, that the kernel is just
about to take back from somebody who has ended, and that are no part of the pool."""
ALL_PAGES = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
"""Also those in use beyond what the pool is set to."""

_SURPLUS = ALL_PAGES.with_name("surplus_hugepages")


def free_pages() -> int:
    return int(Path("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages").read_text())


@pytest.fixture
def hugepage_pool() -> Iterator[Callable[[int], None]]:
    """Give a function that makes exactly so many 2 MiB pages free, and put the pool back afterwards."""
    if os.geteuid() != 0:
        pytest.skip("huge pages are reserved as root")
    until_nobody_ends()
    before = int(POOL.read_text())

    def provide(free: int) -> None:
        in_use = int(ALL_PAGES.read_text()) - free_pages()
        POOL.write_text(f"{in_use + free}\n")
        assert free_pages() == free, "the kernel could not reserve the pages: memory too fragmented"

    yield provide
    POOL.write_text(f"{before}\n")


def until_nobody_ends() -> None:
    """Return when no pages are left of those who have ended.

    Such pages are beyond what the pool is set to, and count as its own again for whoever sets it to more. A
    region that a test before made ends when Python collects it.
    """
    gc.collect()
    eventually(lambda: int(_SURPLUS.read_text()) == 0, "end of all who had huge pages", 60)
