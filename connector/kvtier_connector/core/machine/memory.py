"""How much memory this process may still take, and who says so."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvtier_common.kernel import groups
from kvtier_connector.config import GIB, MIB

_PROC: Final = Path("/proc")
_CGROUP: Final = Path("/sys/fs/cgroup")
_V2_LIMITS: Final = ("max", "high")
"""A group is killed beyond the first and slowed down without end beyond the second (Linux,
Documentation/admin-guide/cgroup-v2.rst): memory that is locked cannot be reclaimed from it."""


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


def tightest_bound(proc: Path = _PROC, cgroup: Path = _CGROUP) -> MemoryBound:
    """Return the smallest of the kernel's and the control groups' bounds on ordinary (not huge) pages.

    Args:
        proc: the proc file system.
        cgroup: the control group file system, version 1, 2 or both.
    """
    return _smallest((*_machine(proc), *_memory_groups(proc, cgroup)))


def hugetlb_bound(page_bytes: int, proc: Path = _PROC, cgroup: Path = _CGROUP) -> MemoryBound | None:
    """Return the smallest of the control groups' bounds on huge pages of one size, or None without any.

    Args:
        page_bytes: size of the pages.
        proc: the proc file system.
        cgroup: the control group file system, version 1, 2 or both.
    """
    size = f"{page_bytes // GIB}GB" if page_bytes >= GIB else f"{page_bytes // MIB}MB"
    found = []
    for folder, version in groups("hugetlb", proc, cgroup):
        limit, usage = ("max", "current") if version == 2 else ("limit_in_bytes", "usage_in_bytes")  # noqa: PLR2004 - the version
        for kind in (f"hugetlb.{size}", f"hugetlb.{size}.rsvd"):
            bound = _group_bound(folder, f"{kind}.{limit}", f"{kind}.{usage}")
            found += [bound] if bound else []
    return _smallest(found) if found else None


def _smallest(bounds: Iterable[MemoryBound]) -> MemoryBound:
    return min(bounds, key=lambda bound: bound.available_bytes)


def _machine(proc: Path) -> Iterator[MemoryBound]:
    for line in (proc / "meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            yield MemoryBound(int(value.split()[0]) * 1024, "MemAvailable of /proc/meminfo")


def _memory_groups(proc: Path, cgroup: Path) -> Iterator[MemoryBound]:
    for folder, version in groups("memory", proc, cgroup):
        files = [("memory.limit_in_bytes", "memory.usage_in_bytes")]
        if version == 2:  # noqa: PLR2004 - the version
            files = [(f"memory.{limit}", "memory.current") for limit in _V2_LIMITS]
        for limit, usage in files:
            # Clean page cache counts as used but gives way.
            bound = _group_bound(folder, limit, usage, reclaimable=_clean_page_cache(folder))
            if bound is not None:
                yield bound


def _group_bound(folder: Path, limit: str, usage: str, reclaimable: int = 0) -> MemoryBound | None:
    try:
        limit_text = (folder / limit).read_text().strip()
        used = int((folder / usage).read_text())
    except OSError:
        return None
    if limit_text == "max":
        return None
    return MemoryBound(int(limit_text) - used + reclaimable, f"{limit} of control group {folder}")


def _clean_page_cache(folder: Path) -> int:
    try:
        statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    except OSError:
        return 0
    return int(statistics.get("total_inactive_file", statistics.get("inactive_file", 0)))
