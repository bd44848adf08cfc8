"""More of the prompt in a tier scores higher: those blocks are loaded, or there already, and not computed.

    score = matched blocks / blocks of the prompt, 0 where the prompt fills no block

as gateway-api-inference-extension v1.5.0 (pkg/epp/framework/plugins/scheduling/scorer/prefix/plugin.go) and
llm-d-router v0.9.0 (same path, with its default matchLengthWeight of 0) have it. Blocks are full ones: vLLM
caches no others.

The tiers are inclusive: what a faster one holds, the next one holds too, so the scorers of both count it.
"""

import numpy as np
from numpy.typing import NDArray

from kvtier_common.tier import Tier
from kvtier_scorer.scorers.columns import Columns


def score_prefix(columns: Columns, tier: Tier) -> NDArray[np.float64]:
    """Share of the prompt's blocks, contiguous from the first, that each candidate's `tier` holds, 0 to 1."""
    matched = columns.matched_blocks[tier]
    return matched / columns.total_blocks if columns.total_blocks else np.zeros(len(matched))
