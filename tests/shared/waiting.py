"""Waiting for what others do on their own time: a cluster, a process."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

_POLL_S: Final = 0.05

T = TypeVar("T")


def eventually(look: Callable[[], T], what: str, timeout_s: float = 60.0) -> T:
    """Looks again and again until it finds something true, and returns that.

    Raises:
        TimeoutError: Nothing within the time; the message says what was waited for and what was seen last.
    """
    deadline = time.monotonic() + timeout_s
    while not (found := look()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"no {what} after {timeout_s:.0f} s; last seen: {found!r}")
        time.sleep(_POLL_S)
    return found
