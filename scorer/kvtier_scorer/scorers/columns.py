"""What scorers see of the candidates: one array an attribute, one place a pod."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Columns:
    """The candidates of one pick; every array has one place for each of them, in the same order."""

    queue_depth: NDArray[np.int64]  # requests waiting in the engine, at its last reading (int64)
    picked: NDArray[np.int64]  # requests sent there since that reading (int64)
    # used share of the device cache, 0 to 1, at the last reading (float64)
    kv_cache_utilization: NDArray[np.float64]
    # whether the reading is too old to count (bool); None where all of them count, which is also so where
    # none is fresh and the last ones are taken as true
    stale: NDArray[np.bool_] | None
    # blocks of the prompt, contiguous from the first, that each tier holds; a row for each of a pod (int32)
    matched_blocks: NDArray[np.int32]
    total_blocks: int  # full blocks of the prompt that were looked at
    full_queue: int  # waiting requests with which a pod counts as saturated, 1 or more
    # of those, blocks kept because a request said that they come again (int32); None where none are
    kept_blocks: NDArray[np.int32] | None = None
