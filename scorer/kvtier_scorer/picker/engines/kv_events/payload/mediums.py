"""Which tier a KV event speaks of."""

from collections.abc import Mapping
from typing import Final

from kvtier_scorer.tier import Tier

_TIERS: Final[Mapping[str, Tier]] = {
    "GPU": Tier.GPU,
    "CPU": Tier.CPU,
    "STORAGE": Tier.DISK,
    "DISK": Tier.DISK,
}
"""vLLM's own are GPU, CPU and STORAGE (vllm/distributed/kv_events.py); kvtier's connector uses these too."""


def tier_of(medium: str | None) -> Tier | None:
    """The tier of an event's medium; the device where it has none, None for a medium that is not known."""
    return Tier.GPU if medium is None else _TIERS.get(medium.upper())
