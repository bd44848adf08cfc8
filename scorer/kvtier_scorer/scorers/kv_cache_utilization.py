"""A less used device cache scores higher.

    score = 1 - used share

as gateway-api-inference-extension v1.5.0 (pkg/epp/framework/plugins/scheduling/scorer/kvcacheutilization/
kvcache_utilization.go) and llm-d-router v0.9.0 (same path) have it.

A pod whose reading says nothing scores 0, as if its cache were full.
"""

import numpy as np
from numpy.typing import NDArray

from kvtier_scorer.scorers.columns import Columns


def score_kv_cache_utilization(columns: Columns) -> NDArray[np.float64]:
    """Scores of the candidates, 0 to 1."""
    scores = np.maximum(1.0 - columns.kv_cache_utilization, 0.0)
    if columns.stale is not None:
        scores[columns.stale] = 0.0
    return scores
