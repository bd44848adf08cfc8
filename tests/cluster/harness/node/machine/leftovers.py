"""What a node leaves when its test run is killed: huge pages, control groups, files. The next one removes it.

Its processes, mounts, links and chains go by themselves (see `sandbox`).
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.cluster.harness.node.machine.cgroups import remove_cgroup
from tests.cluster.harness.node.machine.hugepages import return_hugepages
from tests.cluster.harness.programs.locked import lock

_LEDGER: Final = Path("/run/kvtier-nodes")
_STARTED: Final = 18  # of what follows the state in /proc/PID/stat: starttime, in ticks since boot (proc(5))


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Keeps other test runs from starting a node meanwhile: two would choose the same network."""
    with lock(_LEDGER / ".lock"):
        yield


@contextmanager
def note_leftovers(name: str, hugepages: int, folder: Path) -> Iterator[None]:
    """Keeps a note of what a node took as long as the context lasts."""
    note = _LEDGER / name
    pid = os.getpid()
    note.write_text(json.dumps([pid, _start_time(pid), hugepages, str(folder)]))
    try:
        yield
    finally:
        note.unlink()


def remove_leftovers() -> None:
    """Removes what nodes took whose test runs are gone."""
    for note in _LEDGER.glob("[!.]*"):
        pid, started, hugepages, folder = json.loads(note.read_text())
        if _start_time(pid) == started:
            continue
        return_hugepages(hugepages)
        remove_cgroup(note.name)
        shutil.rmtree(folder, ignore_errors=True)
        note.unlink()


def _start_time(pid: int) -> str:
    """When a process was started, which tells it from another that got its number; empty if it is gone."""
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if state in "ZX" else rest[_STARTED]  # dead, though nobody has asked for its status yet
