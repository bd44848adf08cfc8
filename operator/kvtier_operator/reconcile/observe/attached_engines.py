"""Asks the engines of pods that were given a tier, in the background, whether they have it and how large."""

import asyncio
import logging
import math
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import aiohttp

from kvtier_common.metrics.text import Families, read_labels
from kvtier_common.metrics.tier_metrics import CAPACITY_BYTES
from kvtier_connector.attach.decisions import INFO_METRIC
from kvtier_operator.planning.attach.engine_reasons import KNOWN, is_left_alone
from kvtier_operator.reconcile.cache.resources import Key
from kvtier_operator.reconcile.facts.engine_report import EngineReport
from kvtier_operator.reconcile.facts.selected_pods import SelectedPod
from kvtier_operator.reconcile.observe.engine_session import EngineSession
from kvtier_operator.reconcile.observe.engines import READ, read_capacities, read_tiers
from kvtier_operator.reconcile.settings import EngineTimings

_LOG: Final = logging.getLogger(__name__)
_INFO: Final = INFO_METRIC.encode()
_READ: Final = (*READ, *CAPACITY_BYTES.values(), _INFO)
_REASON: Final = re.compile(r"[A-Z][A-Za-z]{0,63}")


def read_report(families: Families) -> EngineReport:
    """What one engine pod's /metrics say; a ValueError where that is not what engines say.

    Processes of one engine may have left more than one reason there: one against the tier is the later.
    """
    reasons = {read_labels(labels).get("reason", "") for labels, value in families.of(_INFO) if value > 0}
    known = sorted(filter(_REASON.fullmatch, reasons), key=lambda reason: (not is_left_alone(reason), reason))
    tokens, findings = read_tiers(families)
    return EngineReport(next(iter(known), ""), tokens, read_capacities(families), findings)


class _Start(NamedTuple):
    """One start of a pod's engine."""

    pod: str
    engine_start: str


@dataclass(slots=True)
class _Asked:
    """What is known of one start."""

    report: EngineReport | None = None
    unsettled: int = 0  # answers in a row, or none, after which it has to be asked again
    due_at: float = 0.0  # when, in seconds of the loop's clock; infinite where no more is to be learnt


@dataclass(slots=True)
class _Engines:
    """The engines of one resource."""

    by_start: dict[_Start, _Asked] = field(default_factory=dict)
    round: asyncio.Task[None] | None = None


@dataclass(frozen=True, slots=True)
class EngineReports:
    """What is known of a resource's engines."""

    by_pod: Mapping[str, EngineReport] = field(default_factory=dict)  # by the pod's name
    again_s: float = math.inf  # when one is to be asked next


class AttachedEngineObserver:
    """Asks each engine until it has said all, less and less often; what it says is kept for that start."""

    def __init__(self, reconcile_in: Callable[[Key, float], None], timings: EngineTimings) -> None:
        self._reconcile_in = reconcile_in
        self._timings = timings
        self._session = EngineSession(timings.request_s)
        self._by_key: dict[Key, _Engines] = {}

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Lets engines be asked until the end of the block."""
        async with self._session.open():
            try:
                yield
            finally:
                self._by_key.clear()  # a round that is ended has nothing reconciled

    def forget(self, key: Key) -> None:
        """A resource has no such pods any more."""
        engines = self._by_key.pop(key, None)
        if engines is not None and engines.round is not None:
            engines.round.cancel()

    def look(
        self, key: Key, pods: Sequence[SelectedPod], told: Sequence[Mapping[str, Any]] = ()
    ) -> EngineReports:
        """What is known now; starts to ask in the background, and has the resource reconciled after that.

        Args:
            key: The resource.
            pods: Those that have its tier.
            told: `status.attach.pods`, from which an operator that has started takes over what an earlier
                one had heard.
        """
        engines = self._by_key.get(key)
        if engines is None:
            engines = self._by_key[key] = _Engines(_taken_over(pods, told))
        starts = {_Start(pod.name, pod.engine_start): pod for pod in pods}
        engines.by_start = {start: engines.by_start.get(start, _Asked()) for start in starts}
        now_s = asyncio.get_running_loop().time()
        reachable = {start: pod for start, pod in starts.items() if pod.address}
        due = [
            (pod, asked)
            for start, pod in reachable.items()
            if (asked := engines.by_start[start]).due_at <= now_s
        ]
        if due and engines.round is None:
            engines.round = self._session.start(self._ask_all(due), f"engines of {key}")
            engines.round.add_done_callback(lambda _: self._end_round(key, engines))
        waits = (engines.by_start[start].due_at - now_s for start in reachable)
        return EngineReports(
            {start.pod: asked.report for start, asked in engines.by_start.items() if asked.report},
            min((wait_s for wait_s in waits if wait_s > 0), default=math.inf),
        )

    def _end_round(self, key: Key, engines: _Engines) -> None:
        engines.round = None
        if self._by_key.get(key) is engines:
            self._reconcile_in(key, 0.0)

    async def _ask_all(self, due: Sequence[tuple[SelectedPod, _Asked]]) -> None:
        await asyncio.gather(*(self._ask(pod, asked) for pod, asked in due))

    async def _ask(self, pod: SelectedPod, asked: _Asked) -> None:
        report = None
        try:
            async with self._session.turns:
                families = await self._session.read(pod.address, _READ)
            report = read_report(families)
        except (aiohttp.ClientError, TimeoutError, ValueError, OSError) as error:
            _LOG.debug("pod %s: its engine was not asked: %s", pod.name, error)
        except Exception as error:  # noqa: BLE001 - nothing that a pod answers may end the looks
            _LOG.error("pod %s: asking its engine: this is a bug in kvtier", pod.name, exc_info=error)
        settled = report is not None and (report.sized or report.left_alone)
        asked.report = report or asked.report
        asked.unsettled = 0 if settled else asked.unsettled + 1
        asked.due_at = asyncio.get_running_loop().time() + self._wait_s(asked)

    def _wait_s(self, asked: _Asked) -> float:
        if asked.unsettled:
            return self._timings.retry.delay_s(asked.unsettled)
        return math.inf if asked.report and asked.report.final else self._timings.again_s


def _taken_over(pods: Sequence[SelectedPod], told: Sequence[Mapping[str, Any]]) -> dict[_Start, _Asked]:
    """Those that were left alone, so that the status does not say otherwise until they are asked again."""
    reasons = {entry["name"]: entry["reason"] for entry in told if entry.get("reason") in KNOWN}
    return {
        _Start(pod.name, pod.engine_start): _Asked(EngineReport(reasons[pod.name]))
        for pod in pods
        if pod.name in reasons
    }
