"""Scorers: each a pure function that gives every candidate a number from 0 to 1; one a file."""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvtier_scorer.config.settings.model import ScorerKind
from kvtier_scorer.scorers.columns import Columns
from kvtier_scorer.scorers.cpu_prefix import score_cpu_prefix
from kvtier_scorer.scorers.disk_prefix import score_disk_prefix
from kvtier_scorer.scorers.gpu_prefix import score_gpu_prefix
from kvtier_scorer.scorers.kv_cache_utilization import score_kv_cache_utilization
from kvtier_scorer.scorers.queue import score_queue

Scorer = Callable[[Columns], NDArray[np.float64]]

SCORERS: Final[Mapping[ScorerKind, Scorer]] = {
    ScorerKind.QUEUE: score_queue,
    ScorerKind.KV_CACHE_UTILIZATION: score_kv_cache_utilization,
    ScorerKind.GPU_PREFIX: score_gpu_prefix,
    ScorerKind.CPU_PREFIX: score_cpu_prefix,
    ScorerKind.DISK_PREFIX: score_disk_prefix,
}
