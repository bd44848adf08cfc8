"""More of the prompt in CPU memory scores higher: those blocks are loaded rather than computed.

The tiers are inclusive: what the device cache holds, this one holds too, so both scorers count it.
"""

import numpy as np
from numpy.typing import NDArray

from kvtier_common.tier import Tier
from kvtier_scorer.scorers.columns import Columns
from kvtier_scorer.scorers.prefix_share import prefix_share


def score_cpu_prefix(columns: Columns) -> NDArray[np.float64]:
    """Scores of the candidates, 0 to 1."""
    return prefix_share(columns, Tier.CPU)
