"""How much memory this process may still take, and who says so."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kvtier_connector.config import GIB, MIB


@dataclass(frozen=True, slots=True)
class MemoryBound:
    """An upper bound on what may still be allocated.

    Args:
        available_bytes: bytes left under the bound.
        source: where it comes from, for people.
    """

    available_bytes: int
    source: str


def format_bytes(count: int) -> str:
    """Return `count` for people: in GiB, or MiB below one GiB."""
    return f"{count / GIB:.2f} GiB" if count >= GIB else f"{count / MIB:.1f} MiB"


def tightest_bound(proc: Path = Path("/proc"), cgroup: Path = Path("/sys/fs/cgroup")) -> MemoryBound:
    """Return the smallest of the kernel's and the control groups' bounds on ordinary (not huge) pages.

    Args:
        proc: the proc file system.
        cgroup: the control group file system, version 1 or 2.
    """
    return min(_bounds(proc, cgroup), key=lambda bound: bound.available_bytes)


def _bounds(proc: Path, cgroup: Path) -> Iterator[MemoryBound]:
    for line in (proc / "meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            yield MemoryBound(int(value.split()[0]) * 1024, "MemAvailable of /proc/meminfo")
    for line in (proc / "self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            root, limit, usage = cgroup, "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            root, limit, usage = cgroup / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        # In a container the path may be the host's, while only the own group is mounted, at the root.
        relative = Path(path.lstrip("/"))
        for folder in dict.fromkeys((*(root / part for part in (relative, *relative.parents)), root)):
            bound = _group_bound(folder, limit, usage)
            if bound is not None:
                yield bound


def _group_bound(folder: Path, limit: str, usage: str) -> MemoryBound | None:
    try:
        limit_text = (folder / limit).read_text().strip()
        used = int((folder / usage).read_text())
        statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    except OSError:
        return None
    if limit_text == "max":
        return None
    # Clean page cache counts as used but gives way.
    reclaimable = int(statistics.get("total_inactive_file", statistics.get("inactive_file", 0)))
    return MemoryBound(int(limit_text) - used + reclaimable, f"{limit} of control group {folder}")
