"""The operator and the picker derive names by tier; the connector writes them out beside what they count."""

from kvtier_common.metrics import cpu_tier, disk_tier
from kvtier_common.metrics.tier_metrics import CACHED_TOKENS, CAPACITY_TOKENS
from kvtier_common.tier import Tier

_WRITTEN = {Tier.CPU: cpu_tier, Tier.DISK: disk_tier}


def test_names_by_tier_are_those_that_the_connector_writes() -> None:
    assert {tier: each.CAPACITY_TOKENS.encode() for tier, each in _WRITTEN.items()} == CAPACITY_TOKENS
    assert {tier: each.CACHED_TOKENS.encode() for tier, each in _WRITTEN.items()} == CACHED_TOKENS
