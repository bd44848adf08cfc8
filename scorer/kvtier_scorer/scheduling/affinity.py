"""Which candidates to prefer because they hold most of the prompt, whatever their weighted sums say.

    preferred = holds at least half of the prompt
                and 0.8 of what the best candidate holds
                and has fewer than 5 requests more than the least loaded one

The queue score spreads the candidates' queues over 0 to 1 however little they differ: with one request
waiting somewhere that pod loses as much as a whole prefix is worth at 2:2:1:1, and prefixes wander from pod
to pod. On the guide's High-cache trace weights alone find 0.7 of the prompts' tokens, with this rule 0.87 of
at most 0.89 (`tests/bench/picker/hit_rate.py`). llm-d-router's prefix-cache-affinity-filter has the same
purpose.
"""

from collections.abc import Collection
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kvtier_scorer.config.scorer_names import PREFIX_SCORERS
from kvtier_scorer.config.settings.sections import Affinity
from kvtier_scorer.scorers.columns import Columns

_OF_THE_BEST: Final = 0.8
"""A pod with nearly as much as the best is as good: load decides between them (llm-d-router's threshold)."""


def preferred(affinity: Affinity, columns: Columns, scored: Collection[str]) -> NDArray[np.bool_] | None:
    """Whether each candidate is preferred; None where none is, and so all are alike.

    Args:
        affinity: The rule.
        columns: The candidates.
        scored: Scorers with a weight: what the tiers of the others hold does not count.
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
