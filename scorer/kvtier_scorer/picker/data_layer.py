"""Keeps the pod table and the index up to date: which pods there are, their load, capacity and blocks."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from math import inf
from typing import Final

from kvtier_common.tier import Tier
from kvtier_scorer.config.settings import PickerSettings
from kvtier_scorer.picker.engines.engine_metrics import EngineMetrics, increase, most_entries, new_entries
from kvtier_scorer.picker.engines.kv_events.subscriber import EventPorts, Subscriber
from kvtier_scorer.picker.engines.scraper import NotListeningError, ScrapeError, Scraper
from kvtier_scorer.picker.observability.counters import HitTokens
from kvtier_scorer.picker.pods.source import Endpoint, PodSource
from kvtier_scorer.scheduling.pods import PodInfo, PodLoad, PodTable

_LOG: Final = logging.getLogger(__name__)
_SOONEST_S: Final = 5.0
"""No engine starts twice in less, whatever its metrics say; each time what it held is forgotten."""
_MOST_PODS: Final = 2048
"""Twice as many as the picker is measured with; each costs connections, and memory of the index."""
_LOG_INTERVAL_S: Final = 60.0
_LINES: Final = 20  # about one pod's capacities; it could tell others each time


@dataclass(slots=True)
class _Pod:
    """What is known of one pod."""

    endpoint: Endpoint
    entries: dict[Tier, int]  # capacity of each tier in the index, in blocks
    last: EngineMetrics | None = None  # its last scrape; None before the first
    away: bool = False  # whether nobody listens there any more
    restarted_s: float = -inf
    resized: int = 0  # how often its tiers were others than before


@dataclass(slots=True)
class DataLayer:
    """Passes on what sources, scrapes and KV events tell to the pod table and its index; does no I/O."""

    table: PodTable
    first_entries: Mapping[Tier, int]  # capacity of each tier, in blocks, until a pod told its own
    most_entries: Mapping[Tier, int]  # the most that a pod is believed
    block_tokens: int
    clock: Callable[[], float]
    on_hits: Callable[[str, HitTokens], None]  # gets an address and what its engine's hit counters grew by
    scraper: Scraper = field(init=False)  # scrapes the pods; set before the first of them comes
    subscriber: Subscriber | None = None  # takes their KV events; None where precise mode is off
    most_pods: int = _MOST_PODS  # pods that are followed; further ones wait until others go
    _pods: dict[str, _Pod] = field(default_factory=dict)
    _waiting: dict[str, Endpoint] = field(default_factory=dict)
    _logged_at_s: float = -inf

    def put(self, endpoint: Endpoint) -> None:
        """A pod is ready."""
        if len(self._pods) >= self.most_pods and endpoint.address not in self._pods:
            self._wait(endpoint)
            return
        self._enter(endpoint)
        self.scraper.follow(endpoint.address)
        _LOG.info("pod %s at %s is ready", endpoint.name, endpoint.address)

    def drop(self, address: str) -> None:
        """A pod is no longer ready."""
        self._waiting.pop(address, None)
        if pod := self._pods.pop(address, None):
            self.scraper.forget(address)
            self._forget(address)
            _LOG.info("pod %s at %s is no longer ready", pod.endpoint.name, address)
            if self._waiting:
                self.put(self._waiting.pop(next(iter(self._waiting))))

    def on_scraped(self, address: str, metrics: EngineMetrics) -> None:
        """A pod told of itself."""
        pod = self._pods.get(address)
        if pod is None:
            return
        before = pod.last
        if before is not None and self.clock() - pod.restarted_s < _SOONEST_S:
            metrics = replace(metrics, started_s=before.started_s)
        if pod.away or (before is not None and metrics.started_s != before.started_s):
            pod = self._restart(pod)
            before = None
        pod.last = metrics
        self.table.load(
            address,
            PodLoad(
                metrics.waiting, metrics.running, metrics.kv_cache_utilization, metrics.loras, self.clock()
            ),
        )
        self._resize(pod, metrics)
        if before is not None:
            self.on_hits(address, increase(before.hits, metrics.hits))
        else:
            self._subscribe(pod, metrics)

    def on_scrape_failed(self, address: str, error: ScrapeError) -> None:
        """A scrape brought nothing: the table's reading of the pod grows old by itself.

        Where nobody listens any more requests would be lost, too, until the pod's readiness tells: it is left
        out until it answers again. A pod that never answered may serve its metrics elsewhere, and stays.
        """
        pod = self._pods.get(address)
        if isinstance(error, NotListeningError) and pod and pod.last is not None and not pod.away:
            pod.away = True
            self._forget(address)
            _LOG.warning("pod %s at %s is gone: %s", pod.endpoint.name, address, error)

    def _wait(self, endpoint: Endpoint) -> None:
        self._waiting[endpoint.address] = endpoint
        if self.clock() - self._logged_at_s >= _LOG_INTERVAL_S:
            _LOG.error(
                "there are more than %d pods; %d are not picked until others go, such as %s",
                self.most_pods, len(self._waiting), endpoint.name,
            )  # fmt: skip
            self._logged_at_s = self.clock()

    def _restart(self, pod: _Pod) -> _Pod:
        """The server at an address is another process: its cache is empty, whatever the source noticed."""
        endpoint = pod.endpoint
        _LOG.warning("pod %s at %s started anew; what it held is forgotten", endpoint.name, endpoint.address)
        self._forget(endpoint.address)
        fresh_readings = self._enter(endpoint)
        fresh_readings.restarted_s = self.clock()
        return fresh_readings

    def _enter(self, endpoint: Endpoint) -> _Pod:
        self.table.put(PodInfo(endpoint.name, endpoint.address), self.first_entries)
        fresh_readings = self._pods[endpoint.address] = _Pod(endpoint, dict(self.first_entries))
        return fresh_readings

    def _forget(self, address: str) -> None:
        if self.subscriber is not None:
            self.subscriber.forget(address)
        self.table.drop(address)

    def _resize(self, pod: _Pod, metrics: EngineMetrics) -> None:
        for tier, entries in new_entries(
            pod.entries, metrics.capacity_tokens, self.block_tokens, self.most_entries
        ).items():
            pod.resized += 1
            _LOG.log(
                logging.INFO if pod.resized <= _LINES else logging.DEBUG,
                "pod %s: its %s tier holds %d blocks, not %d",
                pod.endpoint.name, tier.label, entries, pod.entries[tier],
            )  # fmt: skip
            pod.entries[tier] = entries
            self.table.resize(pod.endpoint.address, tier, entries)

    def _subscribe(self, pod: _Pod, metrics: EngineMetrics) -> None:
        endpoint = pod.endpoint
        number = self.table.number(endpoint.address)
        if self.subscriber is None or number is None:
            return
        if metrics.engines > 1:
            _LOG.warning(
                "pod %s has %d engines behind one address and nobody can say which of them gets a request; "
                "it stays approximate", endpoint.name, metrics.engines,
            )  # fmt: skip
            return
        self.subscriber.follow(endpoint.address, number, endpoint.rank, metrics.model)


@asynccontextmanager
async def data_layer(
    source: PodSource,
    table: PodTable,
    settings: PickerSettings,
    *,
    clock: Callable[[], float] = time.monotonic,
    on_hits: Callable[[str, HitTokens], None] = lambda _address, _tokens: None,
) -> AsyncIterator[DataLayer]:
    """Keeps the table up to date for as long as the context lasts; nobody else puts or drops its pods."""
    prefix = settings.prefix
    layer = DataLayer(
        table,
        prefix.first_entries if prefix else {},
        most_entries(prefix.entries) if prefix else {},
        prefix.block_tokens if prefix else 1,
        clock,
        on_hits,
    )
    async with AsyncExitStack() as stack:
        layer.scraper = await stack.enter_async_context(Scraper(layer, settings.metrics.scrape_interval_s))
        if prefix and settings.events.enabled:
            events = settings.events
            where = EventPorts(events.port, events.replay_port, events.topic)
            layer.subscriber = await stack.enter_async_context(
                Subscriber(table.index, prefix.block_tokens, where)
            )
        try:
            async with asyncio.TaskGroup() as tasks:
                pods = tasks.create_task(source.run(layer), name="pods")
                try:
                    yield layer
                finally:
                    pods.cancel()
        except BaseExceptionGroup as group:
            # there is one: of the source, or of who is inside
            raise group.exceptions[0] from None
