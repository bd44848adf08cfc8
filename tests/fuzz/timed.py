"""An input that takes too long is a fault like any other."""

import time
from collections.abc import Callable
from typing import Final

MOST_S: Final = 0.1
"""Of the process's own time, so that a busy machine makes no fault."""
_CONFIRMED_BY: Final = 3


class TooSlowError(AssertionError):
    """An input takes too long, however often it is tried."""


def run_timed(run: Callable[[bytes], None], data: bytes) -> None:
    """Run an input.

    Raises:
        TooSlowError: It takes more than 100 ms each time; the first may compile or collect garbage.
    """
    took = [_took(run, data)]
    while took[-1] > MOST_S:
        if len(took) > _CONFIRMED_BY:
            raise TooSlowError(f"{len(data)} bytes take {min(took) * 1000:.0f} ms")
        took.append(_took(run, data))


def _took(run: Callable[[bytes], None], data: bytes) -> float:
    before = time.process_time()
    run(data)
    return time.process_time() - before
