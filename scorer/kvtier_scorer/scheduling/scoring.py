"""Candidates' columns, scores and totals: what both a pick and its explanation are made from."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvtier_common.tier import Tier
from kvtier_scorer.config.settings.model import PickerSettings, PrefixSettings
from kvtier_scorer.scheduling.affinity import preferred
from kvtier_scorer.scheduling.pods import PodTable
from kvtier_scorer.scorers import SCORERS
from kvtier_scorer.scorers.columns import Columns


@dataclass(frozen=True, slots=True)
class ScoredCandidates:
    """The candidates of one request; every array has one place for each, in the order of `numbers`.

    Attributes:
        numbers: Their numbers in the pod table.
        columns: What the scorers saw.
        scores: What each scorer gave.
        totals: Sums of score times weight.
        preferred: Candidates that come before the others; None where all are alike.
    """

    numbers: NDArray[np.int32]
    columns: Columns
    scores: Mapping[str, NDArray[np.float64]]
    totals: NDArray[np.float64]
    preferred: NDArray[np.bool_] | None

    def best(self) -> NDArray[np.intp]:
        """Places of the candidates with the highest total, among those that are preferred if any are."""
        totals = self.totals if self.preferred is None else np.where(self.preferred, self.totals, -np.inf)
        is_best: NDArray[np.bool_] = totals == totals.max()
        return is_best.nonzero()[0]

    def matched_tokens(self, place: int, prefix: PrefixSettings | None) -> dict[Tier, int]:
        """Tokens of the prompt that each tier with a scorer of one candidate is believed to hold."""
        if prefix is None:
            return {}
        blocks = self.columns.matched_blocks
        return {tier: int(blocks[tier, place]) * prefix.block_tokens for tier in prefix.entries}


def fresh_readings(
    settings: PickerSettings, table: PodTable, numbers: NDArray[np.int32], now_s: float
) -> NDArray[np.bool_]:
    """Which pods' last reading is recent enough to say something."""
    return now_s - table.read_at_s.take(numbers) <= settings.metrics.staleness_s


def stale_pods(settings: PickerSettings, table: PodTable, now_s: float) -> int:
    """How many pods' last reading says nothing any more."""
    numbers = table.candidates(None)
    return int(len(numbers) - fresh_readings(settings, table, numbers, now_s).sum())


def score_candidates(
    settings: PickerSettings,
    table: PodTable,
    numbers: NDArray[np.int32],
    hashes: NDArray[np.uint64],
    now_s: float,
) -> ScoredCandidates:
    """Scores candidates: each scorer's number for each of them, weighed and added up.

    A pod whose reading is stale scores nothing for its load, as if it were the fullest, and keeps what its
    prefix gives: readings also stop where an engine is only busy. Where every reading is stale the last ones
    are better than none, and the pods are still told apart by what was sent to them since.

    Args:
        settings: Scorers with their weights.
        table: The pods and their last readings.
        numbers: The candidates' numbers in the table (int32), at least one.
        hashes: Chained hashes of the prompt's blocks (uint64).
        now_s: Now, on the clock of the readings.
    """
    is_fresh = fresh_readings(settings, table, numbers, now_s)
    all_count = bool(is_fresh.all()) or not is_fresh.any()
    columns = Columns(
        queue_depth=table.queue_depth.take(numbers),
        picked=table.picked(numbers, now_s, settings.metrics.staleness_s),
        kv_cache_utilization=table.kv_cache_utilization.take(numbers),
        stale=None if all_count else ~is_fresh,
        matched_blocks=(
            table.index.match(hashes, numbers)
            if len(hashes)
            else np.zeros((len(Tier), len(numbers)), np.int32)
        ),
        total_blocks=len(hashes),
        full_queue=settings.shedding.queue_depth,
    )
    scores = {scorer.name: SCORERS[scorer.name](columns) for scorer in settings.scorers}
    first, *others = settings.scorers
    totals = first.weight * scores[first.name]
    for scorer in others:
        totals += scorer.weight * scores[scorer.name]
    return ScoredCandidates(numbers, columns, scores, totals, preferred(settings.affinity, columns, scores))
