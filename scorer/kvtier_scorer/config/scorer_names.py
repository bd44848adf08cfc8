"""The scorers by name: in weights, settings, explanations and metrics."""

from collections.abc import Mapping
from typing import Final

from kvtier_common.tier import Tier

QUEUE: Final = "queue"
KV_CACHE_UTILIZATION: Final = "kv_cache_utilization"

PLUGINS: Final[Mapping[str, str]] = {
    QUEUE: "queue-scorer",
    KV_CACHE_UTILIZATION: "kv-cache-utilization-scorer",
}
"""The plugin of each scorer of our own picker that is not a tier's, in the order of the configuration."""

UPSTREAM_SCORERS: Final = (QUEUE, KV_CACHE_UTILIZATION)
"""Those of them that every other picker has too, as the same plugin."""

PREFIX_SCORERS: Final[Mapping[Tier, str]] = {tier: f"{tier.label}_prefix" for tier in Tier}
"""Who scores what a tier holds; one plugin, `prefix-cache-scorer`, is all of them."""

SCORER_NAMES: Final = (*PLUGINS, *PREFIX_SCORERS.values())
