"""How sure a median is."""

import random
from collections.abc import Sequence
from statistics import median
from typing import Final

_RESAMPLES: Final = 10_000


def confidence_95(values: Sequence[float]) -> tuple[float, float]:
    """Return the bootstrap percentile interval of the median (Efron and Tibshirani 1993, chapter 13)."""
    numbers = random.Random(0)  # noqa: S311 - not for secrets
    medians = sorted(median(numbers.choices(values, k=len(values))) for _ in range(_RESAMPLES))
    return medians[int(0.025 * _RESAMPLES)], medians[int(0.975 * _RESAMPLES)]
