"""What becomes of pods as their scrapes succeed, fail and are refused."""

from typing import Any

import pytest

from kvtier_scorer.index.prefix_index import PrefixIndex
from kvtier_scorer.picker.data_layer import Members
from kvtier_scorer.picker.metrics_scrape.engine_metrics import EngineMetrics, HitTokens
from kvtier_scorer.picker.metrics_scrape.fetch import NobodyThereError, ScrapeError
from kvtier_scorer.picker.pods.source import Endpoint
from kvtier_scorer.scheduling.pods import PodTable
from kvtier_scorer.tier import Tier

ADDRESS = "10.0.0.1:8000"
IDLE = EngineMetrics(waiting=0, running=0, kv_cache_utilization=0.0)


class NoScraper:
    def follow(self, address: str) -> None:
        """Nothing is scraped here."""

    def forget(self, address: str) -> None:
        """Nothing was."""


@pytest.fixture
def members() -> Members:
    made = Members(PodTable(PrefixIndex()), {Tier.GPU: 10}, 16, lambda: 0.0, lambda _address, _hits: None)
    scraper: Any = NoScraper()
    made.scraper = scraper
    made.put(Endpoint("one", ADDRESS))
    return made


REFUSED = NobodyThereError("refused", "cannot connect")


def test_a_pod_where_nobody_listens_any_more_is_left_out_until_it_answers(members: Members) -> None:
    members.scraped(ADDRESS, IDLE)
    members.failed(ADDRESS, REFUSED)
    assert len(members.table) == 0
    members.failed(ADDRESS, REFUSED)
    members.scraped(ADDRESS, IDLE)
    assert members.table.is_there("one", ADDRESS)


def test_a_pod_that_never_answered_stays(members: Members) -> None:
    members.failed(ADDRESS, REFUSED)
    assert members.table.is_there("one", ADDRESS)


def test_a_pod_that_is_silent_stays(members: Members) -> None:
    members.scraped(ADDRESS, IDLE)
    members.failed(ADDRESS, ScrapeError("silent", "/metrics does not answer in time"))
    assert members.table.is_there("one", ADDRESS)


def test_one_that_is_left_out_and_then_dropped_is_gone(members: Members) -> None:
    members.scraped(ADDRESS, IDLE)
    members.failed(ADDRESS, REFUSED)
    members.drop(ADDRESS)
    members.scraped(ADDRESS, IDLE)
    assert len(members.table) == 0


def test_what_it_held_is_forgotten_with_the_process(members: Members) -> None:
    grown: list[HitTokens] = []
    members.confirmed = lambda _address, hits: grown.append(hits)
    members.scraped(ADDRESS, EngineMetrics(0, 0, 0.0, hits=HitTokens(queries=100.0)))
    members.failed(ADDRESS, REFUSED)
    members.scraped(ADDRESS, EngineMetrics(0, 0, 0.0, hits=HitTokens(queries=10.0)))
    members.scraped(ADDRESS, EngineMetrics(0, 0, 0.0, hits=HitTokens(queries=30.0)))
    assert [each.queries for each in grown] == [20.0]
