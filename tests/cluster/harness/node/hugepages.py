"""Huge pages of this machine for a node; the kubelet counts them once, when it starts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_POOL: Final = Path("/sys/kernel/mm/hugepages/hugepages-2048kB")
PAGE_BYTES: Final = 2 * 1024 * 1024


@contextmanager
def reserved_hugepages(count: int) -> Iterator[None]:
    """Adds 2 MiB pages to the machine's pool and takes them away afterwards.

    Raises:
        RuntimeError: The kernel found less memory for them than asked for.
    """
    total = _POOL / "nr_hugepages"
    before = int(total.read_text())
    total.write_text(str(before + count))
    got = int(total.read_text()) - before
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
    total = _POOL / "nr_hugepages"
    total.write_text(str(max(0, int(total.read_text()) - count)))
