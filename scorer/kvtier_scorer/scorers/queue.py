"""Fewer waiting requests score higher.

    score = (max - depth) / (max - min), 1 for every pod where all depths are equal

over the candidates' queue depths, as gateway-api-inference-extension v1.5.0
(pkg/epp/framework/plugins/scheduling/scorer/queuedepth/queue.go) and llm-d-router v0.9.0 (same path) have it.

Depths are known once an interval only, so a burst between two readings would all go to one pod. Each request
sent since the reading takes from its pod's score, counted from the candidate that got fewest:

    score - (picked - min picked) / max(max - min, full queue)

With nothing sent since, this is the others' arithmetic. The divisor is not `max - min` alone: where all
queues are empty, one request would weigh as much as a full queue, and the second request with a prefix would
leave the pod that holds it.

A pod whose reading says nothing scores 0 and does not count for the extremes: it may be the one that hangs.
"""

import numpy as np
from numpy.typing import NDArray

from kvtier_scorer.scorers.columns import Columns


def score_queue(columns: Columns) -> NDArray[np.float64]:
    """Scores of the candidates, 0 to 1."""
    if columns.stale is None:
        return _scores(columns.queue_depth, columns.picked, columns.full_queue)
    fresh = np.flatnonzero(~columns.stale)
    scores = np.zeros(len(columns.queue_depth))
    if len(fresh):
        scores[fresh] = _scores(columns.queue_depth[fresh], columns.picked[fresh], columns.full_queue)
    return scores


def _scores(depths: NDArray[np.int64], picked: NDArray[np.int64], full_queue: int) -> NDArray[np.float64]:
    most = int(depths.max())
    spread = most - int(depths.min())
    scores = np.ones(len(depths)) if spread == 0 else (most - depths) / spread
    least = int(picked.min())
    if int(picked.max()) > least:
        scores -= (picked - least) / max(spread, full_queue)
        np.maximum(scores, 0.0, out=scores)
    return scores
