"""Threads of the picker by priority: the event loop that answers, before the C core's that take frames."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

_TASKS: Final = Path("/proc/self/task")
POOL: Final = frozenset({"event_engine", "lifeguard"})
"""The C core's pool of threads: each frame of a rapid reset is a piece of work for it. The lifeguard starts
further ones, which inherit its niceness. What a well-behaved gateway sends is taken by another thread."""
NICE: Final = 19
"""Some 70 times less of a processor than the loop, where both want it. In a cluster this is among the threads
of one container: containers share by their requests."""


def prefer_event_loop() -> None:
    """Make the C core's pool nicer than everything else of this process; its threads must have started."""
    for task in _TASKS.iterdir():
        with suppress(OSError):  # it has ended
            if (task / "comm").read_text().strip() in POOL:
                os.setpriority(os.PRIO_PROCESS, int(task.name), NICE)
