"""The demo's second act: two engines behind one URL, three ways, each measured in the same run."""

import asyncio
import json
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvtier_common.metrics.text import read_families, read_labels
from kvtier_common.terminal.console import PlainConsole
from kvtier_operator.errors import RuntimeFailedError
from kvtier_operator.planning.envoy.gateway import Address
from kvtier_operator.planning.plan import Plan
from kvtier_operator.runtime.demo.engines import unless_an_engine_fails
from kvtier_operator.runtime.demo.plot import seconds
from kvtier_operator.runtime.demo.routing_act.load import ENGINES, RoutingLoad, fitting_load
from kvtier_operator.runtime.demo.routing_act.result import RoutingResult, Way, WayFigures
from kvtier_operator.runtime.gateway.routing import local_routing
from kvtier_operator.runtime.gateway.running import LocalGateway, Routing
from kvtier_operator.runtime.measure.client import OpenAIClient, Query
from kvtier_operator.runtime.metrics import parse_metrics
from kvtier_operator.runtime.process.ports import LOOPBACK, free_ports
from kvtier_operator.runtime.process.readiness import death
from kvtier_operator.runtime.process.supervised import Command, SupervisedProcess
from kvtier_operator.runtime.session import RunningEngine, RunOptions, Session
from kvtier_operator.runtime.translate import without_tier

_COMMAND: Final = (sys.executable, "-P", "-m", "kvtier_operator.cli", "bench", "shared-prefix")
# Stopping the engines, the report.
_AFTERWARDS_S: Final = 10.0
_SHOWN_INTERVAL_S: Final = 0.5
_PICKS: Final = b"kvtier_picker_picks_total"
_WARM_UP_QUESTIONS: Final = ("What is this about?", "Who wrote this?")


@dataclass(frozen=True, slots=True)
class RoutingQuestions:
    """What the second act may ask.

    Attributes:
        system_tokens: Length of a system prompt.
        warm_up: Two texts as long as a system prompt, with no common beginning.
        until_s: When to be done (time.monotonic); a slow machine asks less.
    """

    system_tokens: int
    warm_up: tuple[str, str]
    until_s: float


@dataclass(frozen=True, slots=True)
class _Entrance:
    """One way in: the URL, the engines behind it, and the seed whose prompts those have not seen."""

    way: Way
    url: str
    engines: Sequence[RunningEngine]
    seed: int


async def run_routing(
    plan: Plan, model: Path, asked: RoutingQuestions, logs: Path, console: PlainConsole
) -> RoutingResult:
    """Start two engines with the tier and two without, ask them in three ways, stop them.

    All processes of all ways run all the time, so that each way sees the same machine.

    Args:
        plan: The engine with the tier, two replicas.
        model: Folder of the model.
        asked: What to ask.
        logs: Folder for logs.
        console: Is told of each step.

    Raises:
        RuntimeFailedError: A process failed or did not do what the demo is about.
    """

    def say(line: str) -> None:
        console.print(line)

    on_port, off_port, turns_port = free_ports(3, LOOPBACK)
    on = Session(
        RunOptions(LOOPBACK, on_port, logs / "two-on", model), plan.engine, ENGINES, local_routing(plan), say
    )
    off = Session(RunOptions(LOOPBACK, off_port, logs / "two-off", model), without_tier(plan.engine), ENGINES)
    started = time.monotonic()
    async with AsyncExitStack() as stack:
        with console.status(f"starting {ENGINES} engines with the tier, {ENGINES} without, picker and Envoy"):
            for session in (on, off):
                await stack.enter_async_context(session)
            await asyncio.gather(on.ready(), off.ready())
            addresses = [_address(engine) for engine in on.engines]
            turns = LocalGateway(Address(LOOPBACK, turns_port), addresses, Routing(), logs / "in-turns", say)
            await stack.enter_async_context(turns)
            await turns.open()
        ready = time.monotonic()
        console.print(f"two engines with the tier and two without are ready after {ready - started:.0f} s")
        entrances = (
            _Entrance(Way.OFF, off.url, off.engines, 1),
            _Entrance(Way.TURNS, f"http://{turns.listen}", on.engines, 2),
            _Entrance(Way.PICKER, on.url, on.engines, 3),
        )
        asking = _ask_all(entrances, plan.resource.spec.model.names[0], asked, logs, console)
        load, ways = await unless_an_engine_fails(asking, (on, off))
        measured = time.monotonic()
        result = RoutingResult(load, ways, await _picks(on), ready - started, measured - ready)
    result.verify()
    return result


async def _ask_all(
    entrances: Sequence[_Entrance], model: str, asked: RoutingQuestions, logs: Path, console: PlainConsole
) -> tuple[RoutingLoad, Mapping[Way, WayFigures]]:
    urls = {engine.url for entrance in entrances for engine in entrance.engines}
    with console.status("warming up"):
        first, second = asked.warm_up
        await _ask_each(urls, model, first, _WARM_UP_QUESTIONS)
        started = time.monotonic()
        await _ask_each(urls, model, second, _WARM_UP_QUESTIONS[:1])
        prompt_s = (time.monotonic() - started) / len(urls)
    left_s = asked.until_s - _AFTERWARDS_S - time.monotonic()
    load = fitting_load(asked.system_tokens, prompt_s, left_s)
    figures = {}
    for entrance in entrances:
        way = figures[entrance.way] = await _ask(entrance, model, load, logs, console)
        console.print(
            f"{entrance.way:<20} {load.requests} requests in {way.seconds:5.1f} s  TTFT "
            f"{seconds(way.ttft_mean_s):>7} on average  {way.device_hit_rate:.0%} device, "
            f"{way.tier_hit_rate:.0%} cpu, {1 - way.hit_rate:.0%} computed",
            markup=False,
        )
    return load, figures


async def _ask_each(urls: Collection[str], model: str, text: str, questions: Sequence[str]) -> None:
    """Have each engine compute a text's beginning, and find it where there is more than one question."""

    def ask(url: str) -> None:
        with OpenAIClient(url) as client:
            for question in questions:
                client.ask(Query.completion(model, f"{text}\n\n{question}\n", 2, ignore_eos=True))

    await asyncio.gather(*(asyncio.to_thread(ask, url) for url in urls))


async def _ask(
    entrance: _Entrance, model: str, load: RoutingLoad, logs: Path, console: PlainConsole
) -> WayFigures:
    """Have the workload asked by `kvtier bench shared-prefix`, a process of its own."""
    name = entrance.way.name.lower()
    written = logs / f"{name}.json"
    command = Command(
        name=f"kvtier bench shared-prefix ({entrance.way})",
        argv=(
            *_COMMAND,
            *("--url", entrance.url, "--model", model, "--name", str(entrance.way)),
            *(argument for engine in entrance.engines for argument in ("--engine", engine.url)),
            *("--seed", str(entrance.seed), "--write", str(written)),
            *load.arguments(),
        ),
    )
    async with SupervisedProcess(command, logs / f"{name}.log") as process:
        showing = asyncio.create_task(_show(entrance, load, console))
        try:
            status = await process.wait()
        finally:
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)
        if status:
            raise death(process, "while it was asking")
    return WayFigures.from_bench(json.loads(written.read_text(encoding="utf-8")))


async def _show(entrance: _Entrance, load: RoutingLoad, console: PlainConsole) -> None:
    """How far it is, by the engines' own count, until it is cancelled."""
    before = await asyncio.to_thread(_answered, entrance.engines)
    with console.status(f"{entrance.way}: 0 of {load.requests} answers have begun") as status:
        while True:
            await asyncio.sleep(_SHOWN_INTERVAL_S)
            begun = await asyncio.to_thread(_answered, entrance.engines) - before
            status.update(f"{entrance.way}: {begun} of {load.requests} answers have begun")


def _answered(engines: Sequence[RunningEngine]) -> int:
    count = 0
    for engine in engines:
        with OpenAIClient(engine.url) as client:
            count += parse_metrics(client.text("/metrics")).ttft_count
    return count


async def _picks(session: Session) -> dict[str, int]:
    """Requests that the picker sent to each engine."""
    url = session.picker_url
    if url is None:
        raise RuntimeFailedError("the engines have no picker")

    def read() -> str:
        with OpenAIClient(url) as client:
            return client.text("/metrics")

    found = read_families((await asyncio.to_thread(read)).encode(), (_PICKS,))
    picks = {read_labels(labels)["endpoint"]: int(value) for labels, value in found.of(_PICKS)}
    return {engine.name: picks.get(str(_address(engine)), 0) for engine in session.engines}


def _address(engine: RunningEngine) -> Address:
    host, _, port = engine.url.removeprefix("http://").rpartition(":")
    return Address(host, int(port))
