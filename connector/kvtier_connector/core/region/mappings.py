"""What the kernel says of a range of this process's memory, after the fact.

Sources: proc_pid_smaps(5), proc_pid_numa_maps(5). Neither needs rights that a container lacks, while asking
by address (move_pages(2), get_mempolicy(2)) needs CAP_SYS_NICE under the usual seccomp profiles.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_SMAPS: Final = Path("/proc/self/smaps")
_NUMA_MAPS: Final = Path("/proc/self/numa_maps")
_LOCKED: Final = "lo"
_HUGE: Final = ("AnonHugePages", "ShmemPmdMapped")


@dataclass(frozen=True, slots=True)
class Mapping:
    """One mapping, or the kernel's part of one.

    Args:
        first: its first address.
        last: the address behind it.
        kib: the counters, such as Rss.
        flags: two letters each, as VmFlags has them.
    """

    first: int
    last: int
    kib: dict[str, int]
    flags: frozenset[str]


@dataclass(frozen=True, slots=True)
class RangeState:
    """A range's memory.

    Args:
        resident_bytes: in memory and mapped; pages of the huge page pool are not counted.
        huge_bytes: on transparent huge pages.
        locked_bytes: in mappings that mlock(2) has locked. smaps' own Locked would not do: it is this
            process's share of pages that others have mapped too.
    """

    resident_bytes: int
    huge_bytes: int
    locked_bytes: int


def range_state(address: int, size_bytes: int, smaps: Path = _SMAPS) -> RangeState:
    """Return the state of a range of this process; a mapping that reaches beyond counts up to its size."""
    inside = [
        mapping
        for mapping in _parsed(smaps.read_text())
        if mapping.first < address + size_bytes and address < mapping.last
    ]
    resident = sum(mapping.kib.get("Rss", 0) for mapping in inside) * 1024
    huge = sum(mapping.kib.get(name, 0) for mapping in inside for name in _HUGE) * 1024
    locked = sum(
        min(mapping.last, address + size_bytes) - max(mapping.first, address)
        for mapping in inside
        if _LOCKED in mapping.flags
    )
    return RangeState(min(resident, size_bytes), min(huge, size_bytes), locked)


def bytes_on_nodes(address: int, size_bytes: int, numa_maps: Path = _NUMA_MAPS) -> dict[int, int]:
    """Return how many bytes of a range lie on which NUMA node; empty where the kernel does not say."""
    found: Counter[int] = Counter()
    try:
        lines = numa_maps.read_text().splitlines()
    except OSError:
        return {}
    for line in lines:
        first, _, *fields = line.split()
        if address <= int(first, 16) < address + size_bytes:
            pairs = dict(field.split("=", 1) for field in fields if "=" in field)
            page_bytes = int(pairs.get("kernelpagesize_kB", "4")) * 1024
            for name, pages in pairs.items():
                if name[0] == "N" and name[1:].isdigit():
                    found[int(name[1:])] += int(pages) * page_bytes
    return dict(found)


def _parsed(smaps: str) -> Iterator[Mapping]:
    first = last = 0
    kib: dict[str, int] = {}
    for line in smaps.splitlines():
        name, *values = line.split()
        if not name.endswith(":"):
            first, last = (int(bound, 16) for bound in name.split("-"))
            kib = {}
        elif name == "VmFlags:":  # the last line of a mapping
            yield Mapping(first, last, kib, frozenset(values))
        elif values[-1:] == ["kB"]:
            kib[name[:-1]] = int(values[0])
