"""The most memory that a process has had."""

from pathlib import Path
from typing import Final

import psutil

_KIB: Final = 1024


def peak_bytes(pid: int) -> int:
    """Resident memory at its peak, with the peaks of the processes that it has now."""
    family = [pid, *(process.pid for process in psutil.Process(pid).children(recursive=True))]
    return sum(map(_peak_bytes, family))


def _peak_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * _KIB
