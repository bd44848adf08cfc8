"""Scrapes every pod again and again, each in its own rhythm, so that a thousand do not take a whole core."""

import asyncio
import logging
import random
from collections.abc import Callable
from math import inf
from typing import Final, Protocol, Self

import aiohttp

from kvtier_common.backoff import doubled_s
from kvtier_common.metrics.answer import MetricsAnswerError, metrics_session, read_metrics
from kvtier_scorer.picker.engines import pod_task
from kvtier_scorer.picker.engines.engine_metrics import WANTED, EngineMetrics, NotMetricsError, engine_metrics

SCRAPE_S: Final = 0.0003
"""Processor time of a scrape of 60 KB: 0.2 ms for the request, 0.1 ms to read it (a 2-core VM)."""
SHARE: Final = 0.25  # of one core, that scraping may take at most
_LONGEST_S: Final = 5.0
_KEPT_S: Final = 60.0
_MOST_CHARACTERS: Final = 80
_LOG: Final = logging.getLogger(__name__)
_TIMEOUT_S: Final = 1.0
_LONG_ANSWERS: Final = 8  # that are read at a time: each may have 1 MiB of samples
_LOG_INTERVAL_S: Final = 10.0  # of one pod, that may have another trouble each time


def interval_s(wanted_s: float, pods: int) -> float:
    """Seconds between two scrapes of a pod: as wanted, or so that all pods take a quarter core.

    At 0.1 s it stretches from 83 pods on; 1,000 pods are scraped every 1.2 s.
    """
    return max(wanted_s, pods * SCRAPE_S / SHARE)


def after_failures_s(usual_s: float, failures: int) -> float:
    """Seconds to the next scrape after so many wrong answers in a row: doubling, 5 s at most."""
    return max(usual_s, doubled_s(usual_s, _LONGEST_S, failures))


class ScrapeError(Exception):
    """A scrape brought nothing to read; the message says what happened, in one line."""

    def __init__(self, kind: str, message: str, *, is_answer: bool = False) -> None:
        self.kind = kind  # what sort of trouble it is, the same for as long as only its details change
        # whether it is what the pod said that is wrong; asking again at once costs time for nothing
        self.is_answer = is_answer
        super().__init__(message)


class NotListeningError(ScrapeError):
    """Nothing listens at the address: the process that would serve requests there, too, is gone."""


def scrape_session(timeout_s: float) -> aiohttp.ClientSession:
    """A session with one connection a pod; the pods' number is not bounded."""
    return metrics_session(timeout_s, "kvtier-picker", kept_s=_KEPT_S)


async def fetch(
    session: aiohttp.ClientSession, address: str, turns: asyncio.Semaphore | None = None
) -> EngineMetrics:
    """Scrapes one pod; long answers of all pods take turns.

    Raises NotListeningError: the connection was refused; ScrapeError: it does not answer, not in time, or
    with something that is not an engine's metrics.
    """
    try:
        return engine_metrics(await read_metrics(session, address, WANTED, turns=turns))
    except MetricsAnswerError as error:
        raise ScrapeError(error.kind, str(error), is_answer=True) from error
    except NotMetricsError as error:
        raise ScrapeError("not metrics", f"/metrics is not an engine's: {error}", is_answer=True) from error
    except TimeoutError as error:
        raise ScrapeError("silent", "/metrics does not answer in time") from error
    except aiohttp.ClientConnectorError as error:
        reason = f"cannot connect: {error.strerror or error}"
        if isinstance(error.os_error, ConnectionRefusedError):
            raise NotListeningError("refused", reason) from error
        raise ScrapeError("unreachable", reason) from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        text = str(error)[:_MOST_CHARACTERS] or type(error).__name__
        raise ScrapeError("unreadable", f"/metrics cannot be read: {text!a}", is_answer=True) from error


class ScrapeSink(Protocol):
    """Gets the results of scrapes."""

    def on_scraped(self, address: str, metrics: EngineMetrics) -> None:
        """A pod answered."""

    def on_scrape_failed(self, address: str, error: ScrapeError) -> None:
        """A scrape brought nothing; what is known of the pod's load grows old."""


class Scraper:
    """The scrapes of all pods that are followed; to be entered and left, which ends them.

    A pod's first scrape comes at a random moment of the first interval, so that the scrapes of pods that
    came together stay apart. At most one scrape of a pod is under way at any time, over one connection. A pod
    that answers with something that is not an engine's metrics is asked less and less often.
    """

    def __init__(
        self,
        sink: ScrapeSink,
        wanted_interval_s: float,
        *,
        timeout_s: float = _TIMEOUT_S,
        spread: Callable[[], float] = random.random,
    ) -> None:
        self._sink = sink
        self._wanted_interval_s = wanted_interval_s
        self._timeout_s = timeout_s
        self._spread = spread
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._troubles: dict[str, str] = {}
        self._logged: dict[str, tuple[str, float]] = {}
        self._turns = asyncio.Semaphore(_LONG_ANSWERS)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = scrape_session(self._timeout_s)
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = list(self._tasks.values())
        for address in tuple(self._tasks):
            self.forget(address)
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    @property
    def interval_s(self) -> float:
        """Seconds between two scrapes of a pod, with as many pods as there are now."""
        return interval_s(self._wanted_interval_s, len(self._tasks))

    @property
    def failures(self) -> dict[str, str]:
        """What kind of trouble the last scrape had, for the pods whose last scrape did."""
        return dict(self._troubles)

    def follow(self, address: str) -> None:
        """Scrapes a pod from now on. Needs a running loop."""
        if address not in self._tasks:
            self._tasks[address] = pod_task(self._run(address), name=f"scrape {address}")

    def forget(self, address: str) -> None:
        """No longer scrapes a pod; nothing of it reaches the sink any more."""
        if task := self._tasks.pop(address, None):
            task.cancel()
        self._troubles.pop(address, None)
        self._logged.pop(address, None)

    async def _run(self, address: str) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + self._spread() * self.interval_s
        wrong = 0
        while True:
            await asyncio.sleep(max(0.0, due - loop.time()))
            wrong = 0 if await self._scrape(address) else wrong + 1
            due = max(due + after_failures_s(self.interval_s, wrong), loop.time())

    async def _scrape(self, address: str) -> bool:
        """Whether the pod is to be asked again as usual."""
        assert self._session is not None  # noqa: S101 - follow() is only called inside of the context
        try:
            metrics = await fetch(self._session, address, self._turns)
        except ScrapeError as error:
            self._on_failure(address, error)
            self._sink.on_scrape_failed(address, error)
            return not error.is_answer
        else:
            self._troubles.pop(address, None)
            self._on_success(address)
            self._sink.on_scraped(address, metrics)
            return True

    def _on_failure(self, address: str, error: ScrapeError) -> None:
        """One line when a pod's trouble begins or becomes another; not for each scrape, whatever it says."""
        self._troubles[address] = error.kind
        now_s = asyncio.get_running_loop().time()
        kind, logged_at_s = self._logged.get(address, ("", -inf))
        if kind != error.kind and now_s - logged_at_s >= _LOG_INTERVAL_S:
            _LOG.warning("pod %s: %s; what is known of its load grows old", address, error)
            self._logged[address] = (error.kind, now_s)

    def _on_success(self, address: str) -> None:
        kind, logged_at_s = self._logged.get(address, ("", -inf))
        if kind:
            _LOG.info("pod %s: its metrics can be read again", address)
            self._logged[address] = ("", logged_at_s)
