"""Who holds what of the tiers, as engines count it."""

from dataclasses import replace
from typing import Any

import pytest
from tests.cases.seen import ENGINE_TEXT, resource, view_of

from kvtier_common.metrics.text import Families, read_families
from kvtier_common.tier import Tier
from kvtier_operator.cli.cluster.next_step import NextStep
from kvtier_operator.cli.cluster.resource import ENGINE_METRICS, Seen
from kvtier_operator.cli.cluster.screen import overview_by_share, status_screen
from kvtier_operator.cli.cluster.shares import SHARE_METRICS, PrefixRow, Shares, shares_of

TEXT = """\
vllm:kvtier_retained_bytes{engine="0",tier="cpu"} 1048576.0
vllm:kvtier_tenant_held_bytes{engine="0",tenant="search",tier="cpu"} 2097152.0
vllm:kvtier_tenant_held_bytes{engine="0",tenant="search",tier="disk"} 4194304.0
vllm:kvtier_tenant_held_bytes{engine="0",tenant="other",tier="cpu"} 1048576.0
vllm:kvtier_tenant_asked_tokens_total{engine="0",tenant="search"} 400.0
vllm:kvtier_tenant_hit_tokens_total{engine="0",tenant="search"} 300.0
vllm:kvtier_tenant_saved_seconds_total{engine="0",tenant="search"} 0.5
kvtier_prefix_computed{prefix="tools"} 1.0
kvtier_prefix_tokens{prefix="tools"} 1200.0
kvtier_prefix_cached_tokens{prefix="tools"} 600.0
"""
_STEP = NextStep("nothing to do", "")
TOLD: list[dict[str, Any]] = [{"name": "tools", "tokens": 1200}, {"name": "policy"}]


def families(text: str) -> Families:
    return read_families((ENGINE_TEXT + text).encode(), (*ENGINE_METRICS, *SHARE_METRICS))


def shares(*texts: str) -> Shares:
    return shares_of([families(text) for text in texts], TOLD)


def test_engines_are_added_up() -> None:
    one, two = shares(TEXT), shares(TEXT, TEXT)
    [search, other] = two.tenants
    assert search.held_bytes == {Tier.CPU: 4 << 20, Tier.DISK: 8 << 20}
    assert (search.hit_tokens, search.saved_s) == (600, 1.0)
    assert search.hit_rate == one.tenants[0].hit_rate == pytest.approx(0.75)
    assert (other.name, other.hit_rate) == ("other", None)
    assert two.retained_bytes == {Tier.CPU: 2 << 20}


def test_a_prefix_is_as_warm_as_in_the_engine_that_found_least() -> None:
    cold = TEXT.replace("} 600.0", "} 0.0")
    assert shares(TEXT).prefixes[0] == PrefixRow("tools", 1200, 0.5)
    assert shares(TEXT, cold).prefixes == (PrefixRow("tools", 1200, 0.0), PrefixRow("policy", None, None))


def test_without_an_engine_the_status_tells_of_prefixes() -> None:
    assert shares_of([], TOLD).prefixes[0] == PrefixRow("tools", 1200, None)
    assert shares_of([], []) == Shares((), {}, ())


def test_a_tier_that_nobody_knows_is_no_tier() -> None:
    assert shares(TEXT.replace('tier="cpu"', 'tier="tape"')).retained_bytes == {}


def test_a_screen_has_them_only_where_they_are() -> None:
    plain = view_of(Seen(resource()))
    told = replace(plain, shares=shares(TEXT))
    screen, before = (status_screen(view, _STEP, 100) for view in (told, plain))
    assert "tenant" not in before
    for words in (
        "search  2 MiB  4 MiB     75.0%     300  0.5 s",
        "tools    1,200   50.0%",
        "1 MiB of cpu",
    ):
        assert words in screen, screen


def test_a_line_a_tenant() -> None:
    plain = view_of(Seen(resource()))
    lines = overview_by_share([replace(plain, shares=shares(TEXT)), plain], 100).splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["name", "tenant"],
        ["llm/qwen3-32b", "search"],
        ["llm/qwen3-32b", "other"],
    ]
    assert "spec.tenants" in overview_by_share([plain], 100)
    assert overview_by_share([], 80) == "no KVCacheTiers\n"
