"""What becomes of pods as their scrapes succeed, fail and are refused."""

from typing import Any

import pytest

from kvtier_common.tier import Tier
from kvtier_scorer.index.prefix_index import PrefixIndex
from kvtier_scorer.picker.data_layer import DataLayer
from kvtier_scorer.picker.engines.engine_metrics import EngineMetrics
from kvtier_scorer.picker.engines.scraper import NotListeningError, ScrapeError
from kvtier_scorer.picker.observability.counters import HitTokens
from kvtier_scorer.picker.pods.source import Endpoint
from kvtier_scorer.scheduling.pods import PodTable

ADDRESS = "10.0.0.1:8000"
IDLE = EngineMetrics(waiting=0, running=0, kv_cache_utilization=0.0)


class NoScraper:
    def follow(self, address: str) -> None:
        """Nothing is scraped here."""

    def forget(self, address: str) -> None:
        """Nothing was."""


@pytest.fixture
def layer() -> DataLayer:
    made = DataLayer(
        PodTable(PrefixIndex()), {Tier.GPU: 10}, {Tier.GPU: 20}, 16, lambda: 0.0, lambda _address, _hits: None
    )
    scraper: Any = NoScraper()
    made.scraper = scraper
    made.put(Endpoint("one", ADDRESS))
    return made


REFUSED = NotListeningError("refused", "cannot connect")


def test_a_pod_where_nobody_listens_any_more_is_left_out_until_it_answers(layer: DataLayer) -> None:
    layer.on_scraped(ADDRESS, IDLE)
    layer.on_scrape_failed(ADDRESS, REFUSED)
    assert len(layer.table) == 0
    layer.on_scrape_failed(ADDRESS, REFUSED)
    layer.on_scraped(ADDRESS, IDLE)
    assert layer.table.is_there("one", ADDRESS)


def test_a_pod_that_never_answered_stays(layer: DataLayer) -> None:
    layer.on_scrape_failed(ADDRESS, REFUSED)
    assert layer.table.is_there("one", ADDRESS)


def test_a_pod_that_is_silent_stays(layer: DataLayer) -> None:
    layer.on_scraped(ADDRESS, IDLE)
    layer.on_scrape_failed(ADDRESS, ScrapeError("silent", "/metrics does not answer in time"))
    assert layer.table.is_there("one", ADDRESS)


def test_one_that_is_left_out_and_then_dropped_is_gone(layer: DataLayer) -> None:
    layer.on_scraped(ADDRESS, IDLE)
    layer.on_scrape_failed(ADDRESS, REFUSED)
    layer.drop(ADDRESS)
    layer.on_scraped(ADDRESS, IDLE)
    assert len(layer.table) == 0


def test_what_it_held_is_forgotten_with_the_process(layer: DataLayer) -> None:
    increase: list[HitTokens] = []
    layer.on_hits = lambda _address, hits: increase.append(hits)
    layer.on_scraped(ADDRESS, EngineMetrics(0, 0, 0.0, hits=HitTokens(queries=100.0)))
    layer.on_scrape_failed(ADDRESS, REFUSED)
    layer.on_scraped(ADDRESS, EngineMetrics(0, 0, 0.0, hits=HitTokens(queries=10.0)))
    layer.on_scraped(ADDRESS, EngineMetrics(0, 0, 0.0, hits=HitTokens(queries=30.0)))
    assert [each.queries for each in increase] == [20.0]


def told(started_s: float = 0.0, gpu_tokens: int = 160) -> EngineMetrics:
    return EngineMetrics(0, 0, 0.0, capacity_tokens={Tier.GPU: gpu_tokens}, started_s=started_s)


def test_a_pod_that_always_says_to_have_just_started_is_believed_once_in_a_while(
    layer: DataLayer, caplog: pytest.LogCaptureFixture
) -> None:
    now_s = 0.0
    layer.clock = lambda: now_s
    for scrape in range(100):
        now_s = scrape / 10
        layer.on_scraped(ADDRESS, told(started_s=scrape))
    assert caplog.text.count("started anew") == 2


def test_a_pod_s_capacity_stays_within_the_plan_however_often_it_tells_another(
    layer: DataLayer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    number = layer.table.number(ADDRESS)
    assert number is not None
    for _ in range(100):
        layer.on_scraped(ADDRESS, told(gpu_tokens=10**15))
        assert layer.table.index.capacity(number, Tier.GPU) == 20
        layer.on_scraped(ADDRESS, told(gpu_tokens=16))
        assert layer.table.index.capacity(number, Tier.GPU) == 1
    assert caplog.text.count("tier holds") == 20


def test_more_pods_than_the_picker_can_hold_wait_with_one_line(
    layer: DataLayer, caplog: pytest.LogCaptureFixture
) -> None:
    layer.most_pods = 2
    for number in range(2, 6):
        layer.put(Endpoint(str(number), f"10.0.0.{number}:8000"))
    assert [pod.name for pod in layer.table] == ["one", "2"]
    assert caplog.text.count("there are more than 2 pods") == 1
    layer.drop("10.0.0.3:8000")
    layer.drop(ADDRESS)
    assert sorted(pod.name for pod in layer.table) == ["2", "4"]
    layer.drop("10.0.0.4:8000")
    layer.drop("10.0.0.5:8000")
    assert [pod.name for pod in layer.table] == ["2"]
