"""Which CPU cores a thread of ours runs on."""

import os
from contextlib import suppress
from pathlib import Path


def use_every_core() -> None:
    """Let the calling thread run on all cores that the process computes on.

    vLLM binds each of its computing threads to one core, and a thread inherits that of the one that made it.
    """
    cores: set[int] = set()
    for thread in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError):  # it ended just now
            cores |= os.sched_getaffinity(int(thread.name))
    os.sched_setaffinity(0, cores)
