"""One at a time: test runs and their workers share caches and the machine."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Waits until nobody else has the lock, and has it until the end of the block.

    Args:
        path: The lock's file, which is made, and its folder too.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
