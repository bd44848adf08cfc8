"""Scorers: each a pure function that gives every candidate a number from 0 to 1; one a file."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvtier_scorer.config.model import KV_CACHE_UTILIZATION, PREFIX_SCORERS, QUEUE
from kvtier_scorer.scorers.columns import Columns
from kvtier_scorer.scorers.kv_cache_utilization import score_kv_cache_utilization
from kvtier_scorer.scorers.prefix import score_prefix
from kvtier_scorer.scorers.queue import score_queue

Scorer = Callable[[Columns], NDArray[np.float64]]

SCORERS: Final[Mapping[str, Scorer]] = {
    QUEUE: score_queue,
    KV_CACHE_UTILIZATION: score_kv_cache_utilization,
    **{name: partial(score_prefix, tier=tier) for tier, name in PREFIX_SCORERS.items()},
}
