"""What pods tell of themselves becomes the pod table: load, capacity by tier, and what grows old."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.cluster.harness.programs.ports import free_ports
from tests.picker.data_layer.kv_events.publisher import running_publisher
from tests.picker.data_layer.polling import until
from tests.picker.flavours.inputs import EXAMPLE
from tests.picker.harness.fleet import Fleet, running_fleet
from tests.unit.scorer.picker.engines.kv_events.wire import batch, name, stored_event

from kvtier_common.tier import Tier
from kvtier_scorer.config.flavors import picker_config
from kvtier_scorer.config.parse import parse_settings
from kvtier_scorer.index.prefix_index import PrefixIndex
from kvtier_scorer.picker.data_layer import DataLayer, data_layer
from kvtier_scorer.picker.pods.source import StaticPods
from kvtier_scorer.scheduling.pods import PodTable
from kvtier_scorer.scheduling.scoring import stale_pods

if TYPE_CHECKING:
    from kvtier_scorer.picker.observability.counters import HitTokens

CONFIG = picker_config("builtin", EXAMPLE).text
SETTINGS = parse_settings(f"{CONFIG}\nmetrics: {{scrapeIntervalMs: 50}}\n")
OFFLOADED = (
    'vllm:kv_offload_config_info{{cpu_kv_cache_size_tokens="{0}",cpu_num_chunks="1",engine="0"}} 1.0\n'
)
KVTIER = "vllm:kvtier_cpu_capacity_tokens{{}} {0}.0\nvllm:kvtier_disk_capacity_tokens{{}} {1}.0\n"
SOME_HASHES = np.arange(1, 5, dtype=np.uint64)


class World:
    """The data layer of a fleet, on a clock that a test turns."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.table = PodTable(PrefixIndex())
        self.now_s = 1000.0
        self.grown: list[HitTokens] = []

    def layer(self, config: str = CONFIG) -> AbstractAsyncContextManager[DataLayer]:
        settings = parse_settings(f"{config}\nmetrics: {{scrapeIntervalMs: 50}}\n")
        return data_layer(
            StaticPods(self.fleet.addresses),
            self.table,
            settings,
            clock=lambda: self.now_s,
            on_hits=lambda _, increase: self.grown.append(increase),
        )

    def number(self, place: int) -> int:
        number = self.table.number(self.fleet.addresses[place])
        assert number is not None
        return number

    def capacity(self, place: int) -> dict[Tier, int]:
        """Blocks of each tier of a pod."""
        return {tier: self.table.index.capacity(self.number(place), tier) for tier in (Tier.GPU, Tier.CPU)}

    async def scraped(self) -> None:
        """Returns when every engine has been asked twice more, so that one whole answer was taken in."""
        before = {each: engine.scraped for each, engine in self.fleet.engines.items()}
        await until(
            lambda: all(self.fleet.engines[each].scraped >= count + 2 for each, count in before.items())
        )


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with running_fleet(3) as fleet:
        yield fleet


@pytest.fixture
async def world(fleet: Fleet) -> World:
    return World(fleet)


@pytest.fixture
async def layer(world: World) -> AsyncIterator[DataLayer]:
    async with world.layer() as layer:
        await until(lambda: len(world.table) == 3)
        yield layer


async def test_load_is_that_of_each_pod(world: World, layer: DataLayer) -> None:
    for place, engine in enumerate(world.fleet.engines.values()):
        engine.waiting, engine.running, engine.kv_cache_usage = place, 10 * place, place / 4
    await world.scraped()
    numbers = [world.number(place) for place in range(3)]
    assert world.table.queue_depth[numbers].tolist() == [0, 1, 2]
    assert world.table.running[numbers].tolist() == [0, 10, 20]
    assert world.table.kv_cache_utilization[numbers].tolist() == [0.0, 0.25, 0.5]
    assert layer.scraper.failures == {}


async def test_each_pods_tiers_have_the_capacity_that_it_tells(world: World, layer: DataLayer) -> None:
    first, second, third = world.fleet.engines.values()
    first.num_gpu_blocks = 5000
    second.more_metrics = OFFLOADED.format(320_000)
    third.num_gpu_blocks, third.block_size = 1000, 32
    third.more_metrics = KVTIER.format(640_001, 1) + OFFLOADED.format(16)
    await world.scraped()
    assert world.capacity(0) == {Tier.GPU: 5000, Tier.CPU: 25_600}, "what is not told stays as configured"
    assert world.capacity(1) == {Tier.GPU: 4096, Tier.CPU: 20_000}
    assert world.capacity(2) == {Tier.GPU: 2000, Tier.CPU: 40_001}, "kvtier's own figure comes first"
    second.more_metrics = OFFLOADED.format(300_000)
    await world.scraped()
    assert world.capacity(1)[Tier.CPU] == 18_750
    second.more_metrics = OFFLOADED.format(310_000)
    await world.scraped()
    assert world.capacity(1)[Tier.CPU] == 18_750, "less than 5 percent are let be"
    assert layer.scraper.failures == {}


@pytest.mark.parametrize(
    "metrics",
    [
        b"<html>no metrics</html>",
        b"",
        b"\x00\xff" * 1000,
        b'vllm:num_requests_waiting{engine="0"} NaN\nvllm:num_requests_running{engine="0"} 1\n',
        b'vllm:num_requests_waiting{engine="0"} -5\nvllm:num_requests_running{engine="0"} 1\n',
        b'vllm:num_requests_waiting{engine="0"} many\nvllm:num_requests_running{engine="0"} 1\n',
        b"vllm:num_requests_waiting\nvllm:num_requests_running\n",
    ],
)
async def test_metrics_that_are_none_leave_the_pod_in_and_its_reading_grows_old(
    world: World, layer: DataLayer, metrics: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    broken = next(iter(world.fleet.engines.values()))
    broken.waiting = 3
    await world.scraped()
    assert stale_pods(SETTINGS, world.table, world.now_s) == 0
    broken.metrics = metrics
    await until(lambda: layer.scraper.failures == {broken.address: "not metrics"})
    world.now_s += SETTINGS.metrics.staleness_s + 1
    await world.scraped()
    assert len(world.table) == 3
    assert world.table.queue_depth[world.number(0)] == 3, "the last reading that there was"
    assert stale_pods(SETTINGS, world.table, world.now_s) == 1
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1
    assert warnings[0].startswith(f"pod {broken.address}: /metrics is not an engine's")
    broken.metrics = None
    await until(lambda: layer.scraper.failures == {})
    await world.scraped()
    assert stale_pods(SETTINGS, world.table, world.now_s) == 0


async def test_absurd_figures_are_taken_as_the_most_there_can_be(world: World, layer: DataLayer) -> None:
    engine = next(iter(world.fleet.engines.values()))
    lines = b'vllm:num_requests_waiting{engine="%d"} 4e18\nvllm:num_requests_running{engine="%d"} 4e18\n'
    engine.metrics = b"".join(lines % (number, number) for number in range(50))
    await until(lambda: world.table.queue_depth[world.number(0)] == 1 << 40)
    engine.metrics = None
    await until(lambda: world.table.queue_depth[world.number(0)] == 0)
    assert layer.scraper.failures == {}


async def test_confirmed_hits_are_what_the_counters_grew_by(world: World, layer: DataLayer) -> None:
    engine = next(iter(world.fleet.engines.values()))
    counters = "vllm:prefix_cache_queries_total{{}} {0}\nvllm:prefix_cache_hits_total{{}} {1}\n"
    engine.more_metrics = counters.format(100, 40)
    await world.scraped()
    world.grown.clear()
    engine.more_metrics = counters.format(150, 60)
    await world.scraped()
    assert sum(each.queries for each in world.grown) == 50
    assert sum(each.hits for each in world.grown) == 20
    assert layer.scraper.failures == {}


async def test_an_engine_that_started_anew_has_forgotten_what_it_held(world: World, layer: DataLayer) -> None:
    engine = next(iter(world.fleet.engines.values()))
    engine.more_metrics = "process_start_time_seconds 1000.5\n"
    await world.scraped()
    before = world.number(0)
    world.table.index.assume_stored(before, SOME_HASHES)
    assert world.table.index.used_blocks(before, Tier.GPU) == len(SOME_HASHES)
    engine.more_metrics = "process_start_time_seconds 1007.5\n"
    await world.scraped()
    assert world.table.index.used_blocks(world.number(0), Tier.GPU) == 0
    assert len(world.table) == 3
    assert layer.scraper.failures == {}


async def test_a_pod_with_events_is_precise_and_one_without_is_not(world: World) -> None:
    [port] = free_ports(1)
    ip, address = world.fleet.ips[1], world.fleet.addresses[1]
    async with (
        running_publisher(ip, port) as publisher,
        world.layer(
            f"{CONFIG}\nevents: {{enabled: true, port: {port}}}\ntokenization: {{mode: Tokenize}}"
        ) as layer,
    ):
        await publisher.subscribed()
        await publisher.publish(batch(stored_event([name(0), name(1)], range(32))))
        assert layer.subscriber is not None
        subscriber = layer.subscriber
        await until(lambda: subscriber.precise == {address})
        assert world.table.index.used_blocks(world.number(1), Tier.GPU) == 2
        world.table.index.assume_stored(world.number(0), SOME_HASHES)
        assert world.table.index.used_blocks(world.number(0), Tier.GPU) == len(SOME_HASHES)
