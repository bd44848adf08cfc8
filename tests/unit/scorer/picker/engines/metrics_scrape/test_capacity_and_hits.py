"""What scrapes change: capacities, confirmed hits, and how often there are scrapes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvtier_common.tier import Tier
from kvtier_scorer.picker.engines.engine_metrics import increase, most_entries, new_entries
from kvtier_scorer.picker.engines.scraper import (
    SCRAPE_S,
    SHARE,
    after_failures_s,
    interval_s,
)
from kvtier_scorer.picker.observability.counters import HitTokens

TOKENS = st.integers(0, 10**9)


@pytest.mark.parametrize(
    ("told", "changed"),
    [
        (16_000, {}),
        (16_800, {}),
        (16_801, {Tier.CPU: 1051}),
        (15_200, {}),
        (15_184, {Tier.CPU: 949}),
        (8_001, {Tier.CPU: 501}),
        (10**15, {Tier.CPU: 2000}),
    ],
)
def test_a_capacity_follows_where_it_is_clearly_another(told: int, changed: dict[Tier, int]) -> None:
    assert new_entries({Tier.CPU: 1000}, {Tier.CPU: told}, 16, {Tier.CPU: 2000}) == changed


def test_a_tier_without_an_index_gets_none_and_one_that_is_not_told_stays() -> None:
    there = {Tier.GPU: 1000, Tier.CPU: 7}
    told = {Tier.DISK: 10**9, Tier.CPU: 1600}
    assert new_entries(there, told, 16, dict.fromkeys(there, 5000)) == {Tier.CPU: 100}


def test_a_pod_is_believed_twice_what_was_planned_and_where_nothing_was_what_no_device_exceeds() -> None:
    assert most_entries({Tier.CPU: 1000, Tier.GPU: None}) == {Tier.CPU: 2000, Tier.GPU: 1 << 20}


@given(TOKENS, TOKENS, st.integers(1, 512))
def test_once_followed_it_stays(entries: int, tokens: int, block: int) -> None:
    most = most_entries({Tier.GPU: None})
    changed = new_entries({Tier.GPU: entries}, {Tier.GPU: tokens}, block, most)
    assert not new_entries({Tier.GPU: entries} | dict(changed), {Tier.GPU: tokens}, block, most)


def test_hits_are_what_the_counters_grew_by_and_all_of_them_after_a_restart() -> None:
    before = HitTokens(100, 50, 50, 20)
    assert increase(before, HitTokens(130, 60, 70, 30)) == HitTokens(30, 10, 20, 10)
    assert increase(before, HitTokens(10, 60, 5, 1)) == HitTokens(10, 60, 5, 1)


def test_many_pods_are_scraped_less_often() -> None:
    assert interval_s(0.1, 0) == interval_s(0.1, 80) == 0.1
    assert interval_s(0.1, 1000) == pytest.approx(1.2)


@given(st.floats(0.05, 0.2), st.integers(0, 10_000))
def test_scraping_never_takes_more_than_its_share(wanted: float, pods: int) -> None:
    assert pods * SCRAPE_S / interval_s(wanted, pods) <= SHARE * 1.0001


def test_what_is_no_engine_is_asked_less_and_less_often() -> None:
    assert [after_failures_s(0.1, failures) for failures in (0, 1, 2, 3, 99)] == [0.1, 0.2, 0.4, 0.8, 5.0]
    assert after_failures_s(7.0, 99) == 7.0
