"""Candidates' columns, scores and totals: what both a pick and its explanation are made from.

    preferred = holds at least half of the prompt
                and 0.8 of what the best candidate holds
                and has fewer than 5 requests more than the least loaded one

The queue score spreads the candidates' queues over 0 to 1 however little they differ: with one request
waiting somewhere that pod loses as much as a whole prefix is worth at 2:2:1:1, and prefixes wander from pod
to pod. On the guide's High-cache trace weights alone find 0.7 of the prompts' tokens, with this rule 0.87 of
at most 0.89 (`tests/bench/picker/hit_rate.py`). llm-d-router's prefix-cache-affinity-filter has the same
purpose.

A pod is saturated with `queueDepth` or more requests waiting, or `kvCacheUtilization` or more of its device
cache used: what gateway-api-inference-extension v1.5.0 (saturationdetector/utilization/detector.go) scores 1
or more. That version compares the pods' average with 1; here each one must be saturated: one pod with a long
queue says nothing of the others.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvtier_common.tier import Tier
from kvtier_scorer.config.model import PREFIX_SCORERS
from kvtier_scorer.config.settings import Affinity, PickerSettings, PrefixSettings, Shed, Shedding
from kvtier_scorer.errors import SaturatedError
from kvtier_scorer.index.layout import TIERS
from kvtier_scorer.scheduling.pods import PodTable
from kvtier_scorer.scorers import SCORERS
from kvtier_scorer.scorers.columns import Columns

_OF_THE_BEST: Final = 0.8
"""A pod with nearly as much as the best is as good: load decides between them (llm-d-router's threshold)."""


def saturated_pods(
    shedding: Shedding,
    queue_depth: NDArray[np.int64],
    kv_cache_utilization: NDArray[np.float64],
    fresh_readings: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Which pods are saturated; the arrays have one place a pod.

    Requests sent since the last reading are not counted: most of them do not wait. A pod without a fresh
    reading counts as saturated, as in the other pickers, but where none has one nobody is: a picker that
    cannot read metrics must not turn the pool off.
    """
    if not fresh_readings.any():
        return fresh_readings
    full_queue: NDArray[np.bool_] = queue_depth >= shedding.queue_depth
    full_cache: NDArray[np.bool_] = kv_cache_utilization >= shedding.kv_cache_utilization
    return full_queue | full_cache | ~fresh_readings


def may_shed(shedding: Shedding, priority: int) -> bool:
    """Whether a request of that priority may be refused."""
    return shedding.shed is Shed.ALL or (shedding.shed is Shed.SHEDDABLE and priority < 0)


def check_saturation(shedding: Shedding, is_saturated: NDArray[np.bool_]) -> None:
    """Refuse a request that may be, where every candidate is saturated (SaturatedError)."""
    if is_saturated.all():
        pods = "the one pod is" if len(is_saturated) == 1 else f"all {len(is_saturated)} pods are"
        raise SaturatedError(
            f"{pods} saturated: {shedding.queue_depth} or more requests wait, or "
            f"{shedding.kv_cache_utilization:.0%} of the KV cache is used; send it again later"
        )


def preferred_pods(affinity: Affinity, columns: Columns, scored: Collection[str]) -> NDArray[np.bool_] | None:
    """Whether each candidate is preferred; None where none is, and so all are alike.

    What the tiers of scorers without a weight hold does not count.
    """
    tiers = [tier for tier, scorer in PREFIX_SCORERS.items() if scorer in scored]
    if not (affinity.enabled and columns.total_blocks and tiers):
        return None
    held = columns.matched_blocks[tiers].max(axis=0)
    most = int(held.max())
    if most < affinity.prompt_share * columns.total_blocks:
        return None
    load = columns.queue_depth + columns.picked
    chosen: NDArray[np.bool_] = (held >= _OF_THE_BEST * most) & (load - load.min() < affinity.queue_slack)
    if columns.stale is not None:
        chosen &= ~columns.stale
    return chosen if chosen.any() else None


@dataclass(frozen=True, slots=True)
class ScoredCandidates:
    """The candidates of one request; every array has one place for each, in the order of `numbers`."""

    numbers: NDArray[np.int32]
    columns: Columns
    scores: Mapping[str, NDArray[np.float64]]
    totals: NDArray[np.float64]  # sums of score times weight
    preferred: NDArray[np.bool_] | None  # candidates that come before the others; None where all are alike

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

    def kept_tokens(self, place: int, prefix: PrefixSettings | None) -> int:
        """Tokens of the prompt that one candidate keeps because a request said that they come again."""
        kept = self.columns.kept_blocks
        return 0 if prefix is None or kept is None else int(kept[place]) * prefix.block_tokens


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
    """Scores candidates, at least one: each scorer's number for each of them, weighed and added up.

    A pod whose reading is stale scores nothing for its load, as if it were the fullest, and keeps what its
    prefix gives: readings also stop where an engine is only busy. Where every reading is stale the last ones
    are better than none, and the pods are still told apart by what was sent to them since.
    """
    is_fresh = fresh_readings(settings, table, numbers, now_s)
    if len(hashes):
        matched, kept = table.match(hashes, numbers, now_s)
    else:
        matched, kept = np.zeros((TIERS, len(numbers)), np.int32), None
    all_count = bool(is_fresh.all()) or not is_fresh.any()
    columns = Columns(
        queue_depth=table.queue_depth.take(numbers),
        picked=table.pick_counts(numbers, now_s, settings.metrics.staleness_s),
        kv_cache_utilization=table.kv_cache_utilization.take(numbers),
        stale=None if all_count else ~is_fresh,
        matched_blocks=matched,
        total_blocks=len(hashes),
        full_queue=settings.shedding.queue_depth,
        kept_blocks=kept,
    )
    scores = {scorer.name: SCORERS[scorer.name](columns) for scorer in settings.scorers}
    first, *others = settings.scorers
    totals = first.weight * scores[first.name]
    for scorer in others:
        totals += scorer.weight * scores[scorer.name]
    return ScoredCandidates(
        numbers, columns, scores, totals, preferred_pods(settings.affinity, columns, scores)
    )
