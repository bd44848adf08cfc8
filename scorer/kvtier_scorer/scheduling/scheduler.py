"""Picks the pod with the highest weighted sum of scores; of equally good ones each with the same chance."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kvtier_scorer.config.settings import PickerSettings
from kvtier_scorer.errors import NoEndpointError, RefusedRequestError
from kvtier_scorer.scheduling.explanation import Explanation, explain
from kvtier_scorer.scheduling.model import Pick, PickRequest, Reasons, block_hashes, prompt_tokens
from kvtier_scorer.scheduling.pods import PodInfo, PodTable
from kvtier_scorer.scheduling.scoring import (
    ScoredCandidates,
    check_saturation,
    fresh_readings,
    may_shed,
    saturated_pods,
    score_candidates,
)

if TYPE_CHECKING:
    from kvtier_scorer.index.prefix_index import PrefixIndex


class Scheduler:
    """Picks pods. Not thread-safe: one event loop owns it, its table and its index.

    The generator chooses among equally good pods; give it a seed to repeat a run.
    """

    def __init__(
        self, settings: PickerSettings, table: PodTable, index: "PrefixIndex", rng: np.random.Generator
    ) -> None:
        if table.index is not index:
            raise ValueError("the table's pods are numbered by another index")
        self._settings = settings
        self._table = table
        self._index = index
        self._rng = rng
        self._now_s = 0.0

    def pick(self, request: PickRequest, now_s: float, *, reasons: bool = False) -> Pick:
        """The pod for a request, now on the clock of the readings. Nothing remembers it until `record_sent`.

        With `reasons` it says what the pod was picked for, which takes a moment.

        Raises NoEndpointError: no pod is ready, or none of the request's subset is; SaturatedError: every
        candidate is saturated and the request is one to shed.
        """
        settings, table = self._settings, self._table
        numbers = self._candidates(request)
        self._check_saturation(request, numbers, now_s)
        self._now_s = now_s
        hashes = block_hashes(request.prompt, settings.prefix)
        scored = score_candidates(settings, table, numbers, hashes, now_s)
        best = scored.best()
        place = int(best[0] if len(best) == 1 else best[self._rng.integers(len(best))])
        number = int(numbers[place])
        info = table.info(number)
        return Pick(
            address=info.address,
            pod_name=info.name,
            pod=number,
            hashes=hashes,
            prompt_tokens=prompt_tokens(request.prompt),
            matched_tokens=scored.matched_tokens(place, settings.prefix),
            score=float(scored.totals[place]),
            reasons=_reasons(scored, place) if reasons else None,
            retain_s=request.retain_s,
        )

    def record_sent(self, pick: Pick) -> None:
        """Learn that a request went where it was picked to go. A pod that left meanwhile is no error."""
        # its number may be another pod's by now
        if self._table.number(pick.address) != pick.pod:
            return
        if self._table.info(pick.pod) != PodInfo(pick.pod_name, pick.address):
            return
        self._table.count_pick(pick.pod, self._now_s, self._settings.metrics.staleness_s)
        self._learn(pick, pick.pod)

    def record_served_by(self, pick: Pick, address: str) -> None:
        """Learn that another pod than the picked one answered, and so holds the prompt too."""
        number = self._table.number(address)
        # addresses, not numbers: the picked pod's number may be another pod's by now
        if number is not None and address != pick.address:
            self._learn(pick, number)

    def explain(self, request: PickRequest, now_s: float) -> Explanation:
        """What a pick would be made from now: each pod's number from each scorer. Raises nothing."""
        refused = None
        try:
            numbers = self._candidates(request)
            self._check_saturation(request, numbers, now_s)
        except RefusedRequestError as error:
            refused = str(error)
        return explain(self._settings, self._table, request, now_s, refused)

    def _learn(self, pick: Pick, number: int) -> None:
        if len(pick.hashes):
            self._index.assume_stored(number, pick.hashes)
            if pick.retain_s > 0:
                # from now, for when the request ends is not told: that is a little less than was asked for
                self._table.keep_prompt(number, pick.hashes, pick.retain_s, self._now_s)

    def _candidates(self, request: PickRequest) -> NDArray[np.int32]:
        numbers = self._table.candidates(request.subset)
        if len(numbers):
            return numbers
        if not len(self._table):
            raise NoEndpointError("no pod is ready; send it again later")
        raise NoEndpointError(
            f"none of the {len(request.subset or ())} endpoints that the gateway allows is ready, "
            f"{len(self._table)} others are; send it again later"
        )

    def _check_saturation(self, request: PickRequest, numbers: NDArray[np.int32], now_s: float) -> None:
        shedding, table = self._settings.shedding, self._table
        if may_shed(shedding, request.priority):
            is_fresh = fresh_readings(self._settings, table, numbers, now_s)
            depths, used = table.queue_depth[numbers], table.kv_cache_utilization[numbers]
            check_saturation(shedding, saturated_pods(shedding, depths, used, is_fresh))


def _reasons(scored: ScoredCandidates, place: int) -> Reasons:
    columns = scored.columns
    return Reasons(
        candidates=len(scored.numbers),
        scores={name: float(scores[place]) for name, scores in scored.scores.items()},
        queue_depth=int(columns.queue_depth[place]),
        picked=int(columns.picked[place]),
        kv_cache_utilization=float(columns.kv_cache_utilization[place]),
    )
