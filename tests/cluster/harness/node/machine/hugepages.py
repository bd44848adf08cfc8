"""Huge pages of this machine for a node; the kubelet counts them once, when it starts."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.shared.hugepages import POOL, until_nobody_ends

PAGE_BYTES: Final = 2 * 1024 * 1024


@contextmanager
def reserved_hugepages(count: int) -> Iterator[None]:
    """Adds 2 MiB pages to the machine's pool and takes them away afterwards.

    Raises:
        RuntimeError: The kernel found less memory for them than asked for.
    """
    until_nobody_ends()
    before = int(POOL.read_text())
    POOL.write_text(str(before + count))
    got = int(POOL.read_text()) - before
    try:
        if got < count:
            raise RuntimeError(
                f"the machine has memory for {got} of {count} huge pages of 2 MiB: free some, or compact it: "
                "echo 1 > /proc/sys/vm/compact_memory"
            )
        yield
    finally:
        return_hugepages(got)


def return_hugepages(count: int) -> None:
    """Takes pages away from the machine's pool; others may have added their own meanwhile."""
    POOL.write_text(str(max(0, int(POOL.read_text()) - count)))
