"""Huge pages for a benchmark's time: the operator reserves them on real nodes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kvtier_connector.config import HUGEPAGE_BYTES
from kvtier_connector.core.region.pages import free_pages

PAGE_BYTES: Final = HUGEPAGE_BYTES[0]
_POOL: Final = Path("/proc/sys/vm/nr_hugepages")
_ALL: Final = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
"""Also counts pages that are in use beyond what the pool is set to (surplus)."""


@contextmanager
def reserved(size_bytes: int) -> Iterator[str]:
    """Have huge pages of 2 MiB free for so much memory, and put the pool back.

    Gives what is missing, for people, or nothing.
    """
    pages = -(-size_bytes // PAGE_BYTES)
    lacking = pages - free_pages(PAGE_BYTES)
    if lacking <= 0:
        yield ""
        return
    before = _POOL.read_text()
    try:
        _POOL.write_text(f"{int(_ALL.read_text()) + lacking}\n")
    except OSError as error:
        reason = f"{_POOL}: {error.strerror}"
        yield f"huge pages: {lacking} of {pages} missing and not to be reserved ({reason}); do it as root"
        return
    except BaseException:  # told to end while the kernel looked for pages, of which it has found some
        _POOL.write_text(before)
        raise
    try:
        lacking = pages - free_pages(PAGE_BYTES)
        yield f"huge pages: the kernel has no memory for {lacking} of {pages}" if lacking > 0 else ""
    finally:
        _POOL.write_text(before)
