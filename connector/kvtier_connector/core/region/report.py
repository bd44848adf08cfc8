"""What a region was asked to be, what it became, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Self

from kvtier_connector.core.machine.memory import format_bytes

SMALL: Final = "4 KiB pages"
TRANSPARENT: Final = "transparent huge pages"
_NEARLY_ALL: Final = 0.95


@dataclass(frozen=True, slots=True)
class RegionReport:
    """What was asked, what was got, and why.

    Args:
        total_bytes: size of the region, all slices.
        asked: the kind of pages asked for, for people.
        got: the kind that was got.
        why: for each thing that was asked and not got, why; empty when there was none.
        seconds: time it took.
        asked_node: the NUMA node asked for this slice, or None.
        nodes: the slice's bytes on each NUMA node, as the kernel says after the fact; empty before a slice is
            attached, and where no node was asked for or the kernel does not say.
    """

    total_bytes: int
    asked: str
    got: str
    why: str
    seconds: float
    asked_node: int | None = None
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
        """Return the report with what the kernel really gave: transparent huge pages are never promised.

        Args:
            share: how much of the slice is on them, 0 to 1.
        """
        if share > _NEARLY_ALL:
            return self
        got = f"{share:.0%} {TRANSPARENT}" if share else SMALL
        return replace(self, got=got, why=self._why("transparent huge pages: no more to be had"))

    def with_node(self, node: int, on_nodes: Mapping[int, int]) -> Self:
        """Return the report with where the pages really lie: a full node passes them on to others.

        Args:
            node: the NUMA node asked for.
            on_nodes: the slice's bytes on each node; empty where the kernel does not say.
        """
        why = self.why
        if on_nodes and on_nodes.get(node, 0) <= _NEARLY_ALL * sum(on_nodes.values()):
            why = self._why(f"NUMA node {node}: no more such pages, or no CPU of it may be used")
        return replace(self, asked_node=node, nodes=tuple(sorted(on_nodes.items())), why=why)

    def _why(self, reason: str) -> str:
        return "; ".join(filter(None, (self.why, reason)))
