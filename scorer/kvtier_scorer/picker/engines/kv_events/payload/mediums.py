"""Which tier a KV event speaks of."""

from collections.abc import Mapping
from typing import Final

from kvtier_common.tier import Tier

_TIERS: Final[Mapping[str, Tier]] = {**{tier.name: tier for tier in Tier}, "STORAGE": Tier.DISK}
"""vLLM's own are GPU, CPU and STORAGE (vllm/distributed/kv_events.py); kvtier's connector uses these too."""


def tier_of(medium: str | None) -> Tier | None:
    """The tier of an event's medium; the device where it has none, None for a medium that is not known."""
    return Tier.GPU if medium is None else _TIERS.get(medium.upper())
