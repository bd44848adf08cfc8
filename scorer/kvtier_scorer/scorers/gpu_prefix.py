"""More of the prompt in the device cache scores higher: those blocks are neither computed nor loaded."""

import numpy as np
from numpy.typing import NDArray

from kvtier_common.tier import Tier
from kvtier_scorer.scorers.columns import Columns
from kvtier_scorer.scorers.prefix_share import prefix_share


def score_gpu_prefix(columns: Columns) -> NDArray[np.float64]:
    """Scores of the candidates, 0 to 1."""
    return prefix_share(columns, Tier.GPU)
