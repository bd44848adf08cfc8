"""Samples of the disk benchmark into a row of its report: medians, spreads and ratios."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

from tests.bench.connector.disk.work import Op, Sample

_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Way:
    """One side in one of its variants, with its samples of one block size and direction, a round each."""

    side: str
    variant: str
    samples: Sequence[Sample]

    @property
    def gbps(self) -> float:
        """Median bandwidth in 1e9 bytes a second."""
        return median(self.rounds)

    @property
    def rounds(self) -> list[float]:
        """Bandwidth of each round in 1e9 bytes a second."""
        return [sample.bytes / sample.seconds / 1e9 for sample in self.samples]

    def figures(self) -> dict[str, Any]:
        """Return the variant's bandwidth, its quartiles, and CPU seconds for 2**30 bytes."""
        rounds = self.rounds
        low, _, high = quantiles(rounds) if len(rounds) > 1 else rounds * 3
        cpu = median(sample.cpu_seconds / sample.bytes * _GIB for sample in self.samples)
        return {"gbps": self.gbps, "gbps_quartiles": [low, high], "cpu_s_per_gib": cpu}


def row(block_bytes: int, op: Op, ways: Mapping[str, Sequence[Way]]) -> dict[str, Any]:
    """Return a row of the report.

    Args:
        block_bytes: size of a block.
        op: the direction.
        ways: each side's variants; a side that could not be measured has none, and null for its figures.

    Returns:
        For each side `<side>_gbps` and `<side>_cpu_s_per_gib` of its fastest variant; for each other side
        than kvtier `over_<side>`, kvtier's bandwidth over that: of the medians, and the median of the ratios
        of samples of one round; and all variants under `variants`.
    """
    best = {side: max(variants, key=lambda way: way.gbps, default=None) for side, variants in ways.items()}
    figures: dict[str, Any] = {"block_kib": block_bytes >> 10, "op": op}
    for side, way in best.items():
        measured = way.figures() if way else {}
        figures[f"{side}_gbps"] = measured.get("gbps")
        figures[f"{side}_cpu_s_per_gib"] = measured.get("cpu_s_per_gib")
    ours = best["kvtier"]
    for side, way in best.items():
        if side != "kvtier":
            figures[f"over_{side}"] = over(ours, way) if ours and way else None
    figures["variants"] = {
        side: {way.variant: way.figures() | _beside(ours, way) for way in variants}
        for side, variants in ways.items()
    }
    return figures


def over(ours: Way, other: Way) -> dict[str, float]:
    """Return how many times faster one is than the other."""
    pairs = [mine / theirs for mine, theirs in zip(ours.rounds, other.rounds, strict=True)]
    return {"of_medians": ours.gbps / other.gbps, "median_of_pairs": median(pairs)}


def _beside(ours: Way | None, way: Way) -> dict[str, Any]:
    return {"kvtier_over": over(ours, way)} if ours else {}
