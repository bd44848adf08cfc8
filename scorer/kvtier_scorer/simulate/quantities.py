"""Sizes and weights as people write them."""

import re
from typing import Final

from kvtier_common.tier import Tier
from kvtier_scorer.config.model import ScorerWeights
from kvtier_scorer.simulate.engine.policy import WEIGHED, weights_in_order
from kvtier_scorer.simulate.errors import SimulationError

_UNITS: Final = {
    "": 1,
    "Ki": 1 << 10,
    "Mi": 1 << 20,
    "Gi": 1 << 30,
    "Ti": 1 << 40,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
}
_QUANTITY: Final = re.compile(r"(\d{1,30}(?:\.\d{1,30})?)(|Ki|Mi|Gi|Ti|k|M|G|T)", re.ASCII)
_WHOLE: Final = re.compile(r"\d{1,9}", re.ASCII)
_LEAST_WEIGHTS: Final = 4
"""Those of tiers behind the CPU's may be left out."""
_MOST_BYTES: Final = 1 << 60
_MOST_WEIGHT: Final = 1_000_000


def bytes_of(text: str) -> int:
    """Bytes of a Kubernetes quantity such as `100Gi`; 0 for none.

    Raises:
        SimulationError: It is none.
    """
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        raise SimulationError(f"must be a size of 0 or more such as 100Gi, not {text!r}")
    size_bytes = float(match[1]) * _UNITS[match[2]]
    if size_bytes > _MOST_BYTES:
        raise SimulationError(f"must be at most {_MOST_BYTES >> 40} Ti, not {text!r}")
    return int(size_bytes)


def weights_of(text: str) -> ScorerWeights:
    """Weights such as `queue:utilization:gpu:cpu` or `queue:utilization:gpu:cpu:disk`.

    Raises:
        SimulationError: They are none, or all 0.
    """
    parts = text.split(":")
    if not _LEAST_WEIGHTS <= len(parts) <= len(WEIGHED) or not all(_WHOLE.fullmatch(part) for part in parts):
        more = "".join(f"[:{tier.label}]" for tier in tuple(Tier)[Tier.CPU + 1 :])
        raise SimulationError(
            f"must be whole numbers queue:utilization:gpu:cpu{more} such as 2:2:1:1, not {text!r}"
        )
    numbers = [int(part) for part in parts]
    if max(numbers) > _MOST_WEIGHT:
        raise SimulationError(f"must be at most {_MOST_WEIGHT:,} each, not {text!r}")
    if not any(numbers):
        raise SimulationError("are all 0; give one a weight")
    return weights_in_order(*numbers)
