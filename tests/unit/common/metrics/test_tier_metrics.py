"""The operator and the picker derive names by tier; the connector writes them out beside what they count."""

from kvtier_common.metrics import cpu_tier, disk_tier, remote_tier
from kvtier_common.metrics.text import read_families
from kvtier_common.metrics.tier_metrics import CACHED_BY_SOURCE, CACHED_TOKENS, CAPACITY_TOKENS, cached_tokens
from kvtier_common.tier import Tier

_WRITTEN = {Tier.CPU: cpu_tier, Tier.DISK: disk_tier, Tier.REMOTE: remote_tier}


def test_names_by_tier_are_those_that_the_connector_writes() -> None:
    assert {tier: each.CAPACITY_TOKENS.encode() for tier, each in _WRITTEN.items()} == CAPACITY_TOKENS
    assert {tier: each.CACHED_TOKENS.encode() for tier, each in _WRITTEN.items()} == CACHED_TOKENS


TEXT = b"""
vllm:prompt_tokens_cached_by_source_total{engine="0",source="device"} 1.0
vllm:prompt_tokens_cached_by_source_total{engine="1",source="device"} 2.0
vllm:prompt_tokens_cached_by_source_total{engine="0",source="host"} 4.0
vllm:prompt_tokens_cached_by_source_total{engine="0",source="external_unspecified"} 8.0
vllm:prompt_tokens_cached_by_source_total{engine="0",source="disk"} 16.0
vllm:prompt_tokens_cached_by_source_total{engine="0",source="p2p"} 32.0
"""


def test_tokens_of_all_engines_by_tier() -> None:
    found = read_families(TEXT, [CACHED_BY_SOURCE])
    assert cached_tokens(found) == {Tier.GPU: 3, Tier.CPU: 12, Tier.DISK: 16, Tier.REMOTE: 0}


def test_what_vllm_has_no_name_for_is_the_remote_tiers_of_an_engine_that_has_one() -> None:
    name = CACHED_TOKENS[Tier.REMOTE]
    found = read_families(TEXT + name + b" 5.0\n", [CACHED_BY_SOURCE, name])
    assert cached_tokens(found) == {Tier.GPU: 3, Tier.CPU: 4, Tier.DISK: 16, Tier.REMOTE: 8}


def test_an_engine_that_says_nothing() -> None:
    assert cached_tokens(read_families(b"", [CACHED_BY_SOURCE])) == dict.fromkeys(Tier, 0)
