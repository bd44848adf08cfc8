"""The demo's second part: two engines behind one URL, three ways, each measured in the same run."""

import asyncio
import json
import math
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Self

from kvtier_common.benchmarks import Workload
from kvtier_common.metrics.text import read_families, read_labels
from kvtier_common.terminal.console import PlainConsole
from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.errors import RuntimeFailedError
from kvtier_operator.planning.envoy.gateway import Address
from kvtier_operator.planning.model_shape.block_tokens import engine_block_tokens
from kvtier_operator.planning.plan import Plan
from kvtier_operator.runtime.demo.prompts import Questions
from kvtier_operator.runtime.demo.tier import SPARE_BLOCKS, kib, unless_an_engine_fails, with_sizes
from kvtier_operator.runtime.gateway import LocalGateway, Routing, local_routing
from kvtier_operator.runtime.measure import OpenAIClient, Query, seconds
from kvtier_operator.runtime.metrics import parse_metrics
from kvtier_operator.runtime.process import LOOPBACK, Command, SupervisedProcess, death, free_ports
from kvtier_operator.runtime.session import RunningEngine, RunOptions, Session
from kvtier_operator.runtime.translate import without_tier

# The shape is the high-cache workload of llm-d's guide to a tiered prefix cache, small enough for two cores:
# questions about system prompts, mixed at random, of which the device caches hold only some at a time.
ENGINES: Final = 2
# More than both device caches hold (`setup.py`), or the tier would have nothing to do.
_GROUPS: Final = 6
_MOST: Final = 10
_FEWEST: Final = 3
# Of a prompt's time, what one takes whose system prompt is found: its question, its answer, its loading.
_FOUND: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingLoad(Workload):
    """What all three ways are asked."""

    groups: int = _GROUPS
    prompts_per_group: int = _MOST
    system_tokens: int = 1_500
    question_tokens: int = 32
    output_tokens: int = 8
    concurrency: int = 2 * ENGINES

    @property
    def cost_in_prompts(self) -> float:
        """What all three ways take, in the time of one computed prompt.

        With the tier off every prompt may be computed; in turns every system prompt once on each engine; with
        the picker once.
        """
        computed = self.groups * (self.prompts_per_group + ENGINES + 1)
        return computed + _FOUND * (3 * self.requests - computed)

    def arguments(self) -> tuple[str, ...]:
        """The same for `kvtier bench shared-prefix`."""
        return (
            *("--num-groups", str(self.groups)),
            *("--prompts-per-group", str(self.prompts_per_group)),
            *("--system-prompt-len", str(self.system_tokens)),
            *("--question-len", str(self.question_tokens)),
            *("--output-len", str(self.output_tokens)),
            *("--concurrency", str(self.concurrency)),
        )


def fitting_load(system_tokens: int, prompt_s: float, left_s: float) -> RoutingLoad:
    """As many questions about each system prompt as fit, three to ten."""
    loads = [
        RoutingLoad(prompts_per_group=prompts, system_tokens=system_tokens)
        for prompts in range(_FEWEST, _MOST + 1)
    ]
    fitting = [load for load in loads if load.cost_in_prompts * prompt_s <= left_s]
    return fitting[-1] if fitting else loads[0]


class Way(StrEnum):
    """How two engines serve one URL."""

    OFF = "tier off, in turns"
    TURNS = "tier on, in turns"
    PICKER = "tier on, picker"


@dataclass(frozen=True, slots=True)
class WayFigures:
    """One way's figures, as `kvtier bench shared-prefix` writes them."""

    seconds: float  # from the first request to the last answer
    ttft_s: tuple[float, ...]  # time to first token of every answer, waiting included
    ttft_mean_s: float  # its mean
    ttft_p90_s: float  # its 90th percentile
    e2e_mean_s: float  # mean time to an answer's end
    e2e_p90_s: float  # its 90th percentile
    tokens_per_s: float  # tokens of prompts and answers over `seconds`
    device_hit_rate: float  # share of prompt tokens found in a device cache, by the engines' own counters
    tier_hit_rate: float  # share found in the CPU tier
    engine_share: tuple[float, ...]  # share of all prompt tokens that each engine got

    @classmethod
    def from_bench(cls, document: Mapping[str, Any]) -> Self:
        """Read the JSON of `kvtier bench shared-prefix --engine ... --write`."""
        try:
            figures = document["shared_prefix"]
            rates = {f"{place}_hit_rate": share for place, share in figures["hit_rate"].items()}
            return cls(**{field.name: {**figures, **rates}[field.name] for field in fields(cls)})
        except (AttributeError, KeyError, TypeError) as error:
            raise RuntimeFailedError(f"kvtier bench shared-prefix wrote no figures: {error!r}") from error

    @property
    def hit_rate(self) -> float:
        """Share of prompt tokens found anywhere."""
        return self.device_hit_rate + self.tier_hit_rate


@dataclass(frozen=True, slots=True)
class RoutingResult:
    """What the second part found."""

    load: RoutingLoad  # what was asked, of each way
    ways: Mapping[Way, WayFigures]  # what came of it
    # requests that the picker sent to each engine, by its own metrics; /tokenize is among them
    picks: Mapping[str, int]
    start_s: float  # seconds until the engines were ready
    measure_s: float  # seconds for everything that was asked of them

    @property
    def speedup(self) -> float:
        """Mean time to first token in turns over that with the picker, both with the tier."""
        return self.ways[Way.TURNS].ttft_mean_s / self.ways[Way.PICKER].ttft_mean_s

    @property
    def over_off(self) -> float:
        """Mean time to first token with the tier off over that with tier and picker."""
        return self.ways[Way.OFF].ttft_mean_s / self.ways[Way.PICKER].ttft_mean_s

    def verify(self) -> None:
        """Raise a RuntimeFailedError unless the picker chose for the last way's requests, by its count."""
        picked = sum(self.picks.values())
        if picked < self.load.requests:
            raise RuntimeFailedError(
                f"the demo does not show what it should: of {self.load.requests} requests the picker chose "
                f"the engine of {picked}"
            )

    def to_json(self) -> dict[str, Any]:
        """The figures and every sample."""
        return {
            "load": asdict(self.load),
            "ways": {str(way): asdict(figures) for way, figures in self.ways.items()},
            "picks": dict(self.picks),
            "turns_over_picker": self.speedup,
            "off_over_picker": self.over_off,
            "start_s": self.start_s,
            "measure_s": self.measure_s,
        }


_ROWS: Final[Sequence[tuple[str, Callable[[WayFigures], str]]]] = (
    ("mean TTFT", lambda way: seconds(way.ttft_mean_s)),
    ("P90 TTFT", lambda way: seconds(way.ttft_p90_s)),
    ("mean E2E latency", lambda way: seconds(way.e2e_mean_s)),
    ("P90 E2E latency", lambda way: seconds(way.e2e_p90_s)),
    ("throughput, all tokens", lambda way: f"{way.tokens_per_s:,.0f} tokens/s"),
    ("found on the device", lambda way: f"{way.device_hit_rate:.0%}"),
    ("found in the CPU tier", lambda way: f"{way.tier_hit_rate:.0%}"),
    ("computed", lambda way: f"{1 - way.hit_rate:.0%}"),
    ("share of each engine", lambda way: " ".join(f"{share:.0%}" for share in way.engine_share)),
)


def routing_rows(result: RoutingResult) -> list[tuple[str, tuple[str, ...]]]:
    """For a reader: each figure's name and its value for each way, in the order of the ways."""
    return [(label, tuple(cell(result.ways[way]) for way in Way)) for label, cell in _ROWS]


def longer_tails(result: RoutingResult) -> str:
    """Why a 90th percentile is longer with the tier than without, for a reader; empty where none is."""
    off = result.ways[Way.OFF]
    longer = [
        f"{seconds(figures.ttft_p90_s)} with {way}"
        for way, figures in result.ways.items()
        if figures.ttft_p90_s > off.ttft_p90_s
    ]
    if not longer:
        return ""
    slowest = math.ceil(result.load.requests / 10)
    return (
        f"P90 TTFT is not better everywhere: {' and '.join(longer)}, {seconds(off.ttft_p90_s)} with "
        f"{Way.OFF}. A tier does not shorten the first question about a system prompt, which an engine has "
        f"to compute. Of {result.load.requests} requests P90 is about the {slowest} slowest, which are such "
        "first questions and what waits behind them, so it varies from run to run."
    )


def routing_title(load: RoutingLoad) -> str:
    """What was asked, in one line."""
    return (
        f"two engines behind one URL: {load.groups} system prompts of {load.system_tokens:,} tokens, "
        f"{load.prompts_per_group} questions about each, {load.concurrency} under way"
    )


def in_one_line(result: RoutingResult) -> str:
    """The mean times to first token."""
    means = (f"{seconds(figures.ttft_mean_s)} with {way}" for way, figures in result.ways.items())
    return f"mean time to first token {'; '.join(means)}"


_COMMAND: Final = (sys.executable, "-P", "-m", "kvtier_operator.cli", "bench", "shared-prefix")
# Stopping the engines, the report.
_AFTERWARDS_S: Final = 10.0
_SHOWN_INTERVAL_S: Final = 0.5
_PICKS: Final = b"kvtier_picker_picks_total"
_WARM_UP_QUESTIONS: Final = ("What is this about?", "Who wrote this?")


@dataclass(frozen=True, slots=True)
class _Entrance:
    """One way in: the URL, the engines behind it, and the seed whose prompts those have not seen."""

    way: Way
    url: str
    engines: Sequence[RunningEngine]
    seed: int


async def run_routing(
    plan: Plan, model: Path, asked: Questions, logs: Path, console: PlainConsole
) -> RoutingResult:
    """Start two engines with the tier and two without, ask them in three ways, stop them.

    All processes of all ways run all the time, so that each way sees the same machine.
    """
    on_port, off_port, turns_port = free_ports(3, LOOPBACK)
    on = Session(
        RunOptions(LOOPBACK, on_port, logs / "two-on", model),
        plan.engine,
        ENGINES,
        local_routing(plan),
        console.print,
    )
    off = Session(RunOptions(LOOPBACK, off_port, logs / "two-off", model), without_tier(plan.engine), ENGINES)
    started = time.monotonic()
    async with AsyncExitStack() as stack:
        with console.status(f"starting {ENGINES} engines with the tier, {ENGINES} without, picker and Envoy"):
            for session in (on, off):
                await stack.enter_async_context(session)
            await asyncio.gather(on.wait_ready(), off.wait_ready())
            addresses = [_address(engine) for engine in on.engines]
            turns = LocalGateway(
                Address(LOOPBACK, turns_port), addresses, Routing(), logs / "in-turns", console.print
            )
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
    entrances: Sequence[_Entrance], model: str, asked: Questions, logs: Path, console: PlainConsole
) -> tuple[RoutingLoad, Mapping[Way, WayFigures]]:
    urls = {engine.url for entrance in entrances for engine in entrance.engines}
    with console.status("warming up"):
        first, second = asked.texts[:2]
        await _ask_each(urls, model, first, _WARM_UP_QUESTIONS)
        started = time.monotonic()
        await _ask_each(urls, model, second, _WARM_UP_QUESTIONS[:1])
        prompt_s = (time.monotonic() - started) / len(urls)
    left_s = asked.until_s - _AFTERWARDS_S - time.monotonic()
    load = fitting_load(asked.tokens, prompt_s, left_s)
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
    before = await asyncio.to_thread(_count_answers, entrance.engines)
    with console.status(f"{entrance.way}: 0 of {load.requests} answers have begun") as status:
        while True:
            await asyncio.sleep(_SHOWN_INTERVAL_S)
            begun = await asyncio.to_thread(_count_answers, entrance.engines) - before
            status.update(f"{entrance.way}: {begun} of {load.requests} answers have begun")


def _count_answers(engines: Sequence[RunningEngine]) -> int:
    count = 0
    for engine in engines:
        with OpenAIClient(engine.url) as client:
            count += parse_metrics(client.text("/metrics")).ttft_count
    return count


async def _picks(session: Session) -> dict[str, int]:
    """Requests that the picker sent to each engine."""
    if session.gateway is None or not session.gateway.metrics_url:
        raise RuntimeFailedError("the engines have no picker")
    with OpenAIClient(session.gateway.metrics_url) as client:
        families = read_families((await asyncio.to_thread(client.text, "/metrics")).encode(), (_PICKS,))
    picks = {read_labels(labels)["endpoint"]: int(value) for labels, value in families.of(_PICKS)}
    return {engine.name: picks.get(str(_address(engine)), 0) for engine in session.engines}


def _address(engine: RunningEngine) -> Address:
    host, _, port = engine.url.removeprefix("http://").rpartition(":")
    return Address(host, int(port))


# The chat template's tokens, and as much as a prompt cut by words may be longer than asked for.
_AROUND_TOKENS: Final = 128
_PROMPTS_ON_DEVICE: Final = 2


def fit_routing_resource(
    resource: KVCacheTier, name: str, load: RoutingLoad, kv_bytes_per_token: int
) -> KVCacheTier:
    """The same for two engines: a device cache holds two prompts, the CPU tier all of two ways' prompts."""
    block = engine_block_tokens(resource.spec.engine)
    longest_tokens = load.system_tokens + load.question_tokens + load.output_tokens + _AROUND_TOKENS
    longest_blocks = -(-longest_tokens // block)
    device_blocks = _PROMPTS_ON_DEVICE * longest_blocks + SPARE_BLOCKS
    tier_blocks = 2 * load.requests * (longest_blocks - load.system_tokens // block)
    tier_blocks += 2 * load.groups * longest_blocks
    device_kib, tier_kib = (
        kib(blocks * block * kv_bytes_per_token) for blocks in (device_blocks, tier_blocks)
    )
    return with_sizes(resource, name, longest_tokens, device_kib, tier_kib, {"replicas": ENGINES})
