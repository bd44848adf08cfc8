"""What a region was asked to be, what it became, and what the kernel says of it after the fact.

Neither proc_pid_smaps(5) nor proc_pid_numa_maps(5) needs rights that a container lacks, while asking by
address (move_pages(2), get_mempolicy(2)) needs CAP_SYS_NICE.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from typing_extensions import Self

from kvtier_connector.core.machine.memory import format_bytes

SMALL: Final = "4 KiB pages"
TRANSPARENT: Final = "transparent huge pages"
_NEARLY_ALL: Final = 0.95
_SMAPS: Final = Path("/proc/self/smaps")
_NUMA_MAPS: Final = Path("/proc/self/numa_maps")
_HEAD: Final = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) .*\n", re.MULTILINE)  # of a mapping, in smaps
_LOCKED: Final = "lo"
_HUGE: Final = ("AnonHugePages", "ShmemPmdMapped")


@dataclass(frozen=True, slots=True)
class RegionReport:
    """What was asked, what was got, and why."""

    total_bytes: int  # size of the region, all slices
    asked: str  # the kind of pages asked for, for people
    got: str  # the kind that was got
    why: str  # for each thing that was asked and not got, why; empty when there was none
    seconds: float  # time it took
    asked_node: int | None = None  # the NUMA node asked for this slice, or None
    # the slice's bytes on each NUMA node, as the kernel says after the fact; empty before a slice is
    # attached, and where no node was asked for or the kernel does not say
    nodes: tuple[tuple[int, int], ...] = ()

    @property
    def on_hugetlbfs(self) -> bool:
        """Whether the pages come from the huge page pool; such pages are never swapped."""
        return self.got.startswith("hugetlbfs")

    def __str__(self) -> str:
        reason = f": {self.why}" if self.why else ""
        total = sum(size for _, size in self.nodes)
        shares = (f"{size / total:.0%} of node {node}" for node, size in self.nodes)
        place = f", NUMA {' and '.join(shares)}" if self.nodes else ""
        asked = self.asked if self.asked_node is None else f"{self.asked}, node {self.asked_node}"
        return f"region {format_bytes(self.total_bytes)} on {self.got}{place} (asked {asked}{reason})"

    def with_transparent(self, share: float) -> Self:
        """Return the report with what the kernel really gave: transparent huge pages are never promised."""
        if share > _NEARLY_ALL:
            return self
        got = f"{share:.0%} {TRANSPARENT}" if share else SMALL
        return replace(self, got=got, why=self._why("transparent huge pages: no more to be had"))

    def with_node(self, node: int, on_nodes: Mapping[int, int]) -> Self:
        """Return the report with where the pages really lie: a full node passes them on to others."""
        why = self.why
        if on_nodes and on_nodes.get(node, 0) <= _NEARLY_ALL * sum(on_nodes.values()):
            why = self._why(f"NUMA node {node}: no more such pages, or no CPU of it may be used")
        return replace(self, asked_node=node, nodes=tuple(sorted(on_nodes.items())), why=why)

    def _why(self, reason: str) -> str:
        return "; ".join(filter(None, (self.why, reason)))


@dataclass(frozen=True, slots=True)
class MappedRange:
    """One mapping, or the kernel's part of one: first and last address, counters, and flags as in VmFlags."""

    first: int
    last: int
    kib: dict[str, int]
    flags: frozenset[str]


@dataclass(frozen=True, slots=True)
class RangeState:
    """A range's memory."""

    resident_bytes: int  # in memory and mapped; pages of the huge page pool are not counted
    huge_bytes: int  # on transparent huge pages
    # in mappings that mlock(2) has locked. smaps' own Locked would not do: it is this process's share of
    # pages that others have mapped too.
    locked_bytes: int


def range_state(address: int, size_bytes: int, smaps: Path = _SMAPS) -> RangeState:
    """Return the state of a range of this process; a mapping that reaches beyond counts up to its size."""
    inside = list(_mappings_of(smaps.read_text(), address, address + size_bytes))
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
    sizes: Counter[int] = Counter()
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
                    sizes[int(name[1:])] += int(pages) * page_bytes
    return dict(sizes)


def _mappings_of(smaps: str, begin: int, end: int) -> Iterator[MappedRange]:
    """Yield the mappings that have some of a range.

    Of the thousands of others that an engine has only the addresses are read: its steps wait for Python.
    """
    heads = list(_HEAD.finditer(smaps))
    for head, place in zip(heads, [*(later.start() for later in heads[1:]), len(smaps)], strict=True):
        first, last = (int(bound, 16) for bound in head.groups())
        if first < end and begin < last:
            yield _mapping(first, last, smaps[head.end() : place])


def _mapping(first: int, last: int, lines: str) -> MappedRange:
    kib: dict[str, int] = {}
    flags = frozenset[str]()
    for line in lines.splitlines():
        name, *values = line.split()
        if name == "VmFlags:":
            flags = frozenset(values)
        elif values[-1:] == ["kB"]:
            kib[name[:-1]] = int(values[0])
    return MappedRange(first, last, kib, flags)
