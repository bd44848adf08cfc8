"""Keeps what a sink is told, and lets a test wait for it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from kvtier_scorer.picker.engines.engine_metrics import EngineMetrics
from kvtier_scorer.picker.engines.scraper import ScrapeError
from kvtier_scorer.picker.pods.source import Endpoint


@dataclass
class Recorder:
    """A sink of pods and of scrapes."""

    here: dict[str, str] = field(default_factory=dict)
    dropped: list[str] = field(default_factory=list)
    scrapes: list[EngineMetrics] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    told: asyncio.Condition = field(default_factory=asyncio.Condition)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def put(self, endpoint: Endpoint) -> None:
        self.here[endpoint.address] = endpoint.name
        self._tell()

    def drop(self, address: str) -> None:
        del self.here[address]
        self.dropped.append(address)
        self._tell()

    def on_scraped(self, address: str, metrics: EngineMetrics) -> None:
        del address
        self.scrapes.append(metrics)
        self._tell()

    def on_scrape_failed(self, address: str, error: ScrapeError) -> None:
        del address
        self.failures.append(str(error))
        self._tell()

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Returns when it is so, asked again whenever something was told."""
        async with asyncio.timeout(30), self.told:
            await self.told.wait_for(is_so)

    def _tell(self) -> None:
        async def tell() -> None:
            async with self.told:
                self.told.notify_all()

        task = asyncio.get_running_loop().create_task(tell())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
