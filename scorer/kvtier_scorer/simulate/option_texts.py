"""Options' texts as numbers: sizes, weights, parts, tenants."""

import re
from typing import Final

from kvtier_common.hints import MOST_TENANT_CHARACTERS
from kvtier_common.tier import OF_A_POD, Tier
from kvtier_scorer.config.model import ScorerWeights
from kvtier_scorer.simulate.policy import WEIGHED, weights_in_order
from kvtier_scorer.simulate.settings import TenantShare
from kvtier_scorer.simulate.trace import SimulationError

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
_LEAST_WEIGHTS: Final = 4  # those of tiers behind the CPU's may be left out
_MOST_BYTES: Final = 1 << 60
_MOST_WEIGHT: Final = 1_000_000
_PERCENT: Final = re.compile(r"(\d{1,3}(?:\.\d{1,6})?)%", re.ASCII)
_TENANT_PARTS: Final = 3


def bytes_of(text: str) -> int:
    """Bytes of a Kubernetes quantity such as `100Gi`; 0 for none."""
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        raise SimulationError(f"must be a size of 0 or more such as 100Gi, not {text!r}")
    size_bytes = float(match[1]) * _UNITS[match[2]]
    if size_bytes > _MOST_BYTES:
        raise SimulationError(f"must be at most {_MOST_BYTES >> 40} Ti, not {text!r}")
    return int(size_bytes)


def weights_of(text: str) -> ScorerWeights:
    """Weights such as `queue:utilization:gpu:cpu` or `queue:utilization:gpu:cpu:disk`."""
    parts = text.split(":")
    if not _LEAST_WEIGHTS <= len(parts) <= len(WEIGHED) or not all(_WHOLE.fullmatch(part) for part in parts):
        more = "".join(f"[:{tier.label}]" for tier in OF_A_POD[Tier.CPU + 1 :])
        raise SimulationError(
            f"must be whole numbers queue:utilization:gpu:cpu{more} such as 2:2:1:1, not {text!r}"
        )
    numbers = [int(part) for part in parts]
    if max(numbers) > _MOST_WEIGHT:
        raise SimulationError(f"must be at most {_MOST_WEIGHT:,} each, not {text!r}")
    if not any(numbers):
        raise SimulationError("are all 0; give one a weight")
    return weights_in_order(*numbers)


def part_of(text: str) -> float:
    """A part such as `30%`, from 0 to 1."""
    match = _PERCENT.fullmatch(text.strip())
    if match is None or float(match[1]) > 100:  # noqa: PLR2004 - per cent
        raise SimulationError(f"must be a part from 0% to 100% such as 30%, not {text!r}")
    return float(match[1]) / 100


def tenant_of(text: str) -> tuple[str, TenantShare]:
    """A tenant's name and its share of every tier, such as `team-a:20%:50%`."""
    parts = text.rsplit(":", _TENANT_PARTS - 1)
    if len(parts) != _TENANT_PARTS or not 0 < len(parts[0]) <= MOST_TENANT_CHARACTERS:
        raise SimulationError(f"must be NAME:GUARANTEED:MOST such as team-a:20%:50%, not {text!r}")
    name, guaranteed, most = parts
    return name, TenantShare(part_of(guaranteed), part_of(most))
