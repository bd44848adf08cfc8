"""What a run shows: a live table on a terminal, plain lines elsewhere."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from aiohttp import ClientError
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kvtier_common.metrics.answer import MetricsAnswerError, metrics_session, read_metrics
from kvtier_common.terminal.console import PlainConsole
from kvtier_common.tier import BEYOND_DEVICE, Tier
from kvtier_operator.planning.base.tier_plan import TierPlan, TiersPlan
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.units import size
from kvtier_operator.runtime.gateway import local_routing, routing_note
from kvtier_operator.runtime.metrics import WANTED, EngineMetrics, engine_metrics
from kvtier_operator.runtime.session import EngineState, RunningEngine, RunOptions, Session
from kvtier_operator.runtime.store import LocalStore, StorePlace

_INTERVAL_S: Final = 1.0
_PLAIN_INTERVAL_S: Final = 10.0
_NAMES: Final = {tier: tier.label for tier in BEYOND_DEVICE} | {Tier.CPU: "CPU"}
_STATE_STYLE: Final = {EngineState.STARTING: "yellow", EngineState.READY: "green", EngineState.FAILED: "red"}


@dataclass(slots=True)
class LiveView:
    """Shows engines until it is cancelled."""

    console: PlainConsole  # where to
    title: str  # above the table: the one URL and the logs' folder
    tiers: TiersPlan  # capacity of the tiers, for their fill
    metrics: dict[str, EngineMetrics] = field(default_factory=dict)  # what each engine last said, by name

    async def follow(self, engines: Sequence[RunningEngine]) -> None:
        """Ask the engines for their metrics again and again, and show them; ends only by cancellation."""
        if self.console.is_terminal:
            with Live(console=self.console, auto_refresh=False) as live:
                async for _ in self._rounds(engines, _INTERVAL_S):
                    live.update(self.table(engines), refresh=True)
        last: Sequence[str] = ()
        async for _ in self._rounds(engines, _PLAIN_INTERVAL_S):
            lines = [plain_line(engine, self.metrics.get(engine.name), self.tiers) for engine in engines]
            if lines != last:
                self.console.print("\n".join(lines), soft_wrap=True)
                last = lines

    def table(self, engines: Sequence[RunningEngine]) -> Table:
        """One row an engine."""
        table = Table(title=self.title, title_justify="left", title_style="bold")
        table.add_column("engine")
        table.add_column("state")
        for column in _columns(self.tiers):
            table.add_column(column, justify="right")
        for engine in engines:
            cells = _cells(self.metrics.get(engine.name), self.tiers)
            table.add_row(engine.name, Text(engine.state, _STATE_STYLE[engine.state]), *cells.values())
        return table

    async def _rounds(self, engines: Sequence[RunningEngine], interval_s: float) -> AsyncIterator[None]:
        async with metrics_session(interval_s, "kvtier-run") as session:
            while True:
                for engine in engines:
                    if engine.state is EngineState.READY:
                        with suppress(ClientError, TimeoutError, MetricsAnswerError):
                            metrics = await read_metrics(session, urlsplit(engine.url).netloc, WANTED)
                            self.metrics[engine.name] = engine_metrics(metrics)
                yield
                await asyncio.sleep(interval_s)


def plain_line(engine: RunningEngine, metrics: EngineMetrics | None, tiers: TiersPlan) -> str:
    """One engine in one line."""
    if metrics is None:
        return f"{engine.name}: {engine.state}"
    cells = ", ".join(f"{name} {value}" for name, value in _cells(metrics, tiers).items())
    return f"{engine.name}: {engine.state}, {cells}"


def _cells(metrics: EngineMetrics | None, tiers: TiersPlan) -> Mapping[str, str]:
    if metrics is None:
        return dict.fromkeys(_columns(tiers), "")
    planned = {tier: plan for tier, plan in tiers.by_tier.items() if tier in _NAMES}
    return {
        "requests": f"{metrics.running_requests}+{metrics.waiting_requests}",
        "prompt tokens": f"{metrics.prompt_tokens:,}",
        "from device": f"{metrics.cached_tokens.get('device', 0):,}",
        **{f"from {_NAMES[tier]}": f"{metrics.cached_tokens.get(tier.label, 0):,}" for tier in planned},
        **{
            f"{_NAMES[tier]} tier": _fill(metrics.held_tokens.get(tier), plan)
            for tier, plan in planned.items()
        },
        "hit rate": "" if metrics.hit_rate is None else f"{metrics.hit_rate:.1%}",
        "TTFT (mean)": "" if metrics.mean_ttft_s is None else f"{metrics.mean_ttft_s:.3f} s",
    }


def _columns(tiers: TiersPlan) -> tuple[str, ...]:
    """What is shown of an engine: of tiers those that there are."""
    return tuple(_cells(EngineMetrics(), tiers))


def _fill(tokens: int | None, tier: TierPlan) -> str:
    """Tokens in a tier of its capacity; the capacity alone where the backend does not count them."""
    held = "" if tokens is None else f"{tokens:,} "
    return f"{held}of {tier.tokens:,}"


async def serve(plan: Plan, options: RunOptions, store: StorePlace | None = None) -> None:
    """Run `plan`, and the store behind it if there is one, until it is cancelled or an engine fails.

    That stops everything else and raises why.
    """
    console = PlainConsole(soft_wrap=True)
    name, replicas = plan.resource.metadata.name, plan.resource.spec.least_replicas
    session = Session(options, plan.engine, replicas, local_routing(plan), console.print)
    if note := routing_note(plan):
        console.print(note)
    console.print(f"starting {replicas} x vLLM for {name}; logs in {options.folder}")

    def print_state(engine: RunningEngine) -> None:
        console.print(f"{engine.name} is {engine.state} at {engine.url}")

    async with AsyncExitStack() as stack:
        if store is not None:
            await stack.enter_async_context(LocalStore(store, options.folder / "store"))
            console.print(f"a store of {size(store.memory_bytes)} at {store.url}")
        await stack.enter_async_context(session)
        await session.wait_ready(print_state)
        if session.gateway and session.gateway.picker_note:
            console.print(session.gateway.picker_note)
        console.print(f"ready: OpenAI-compatible at {session.url}/v1 (Ctrl-C stops)")
        view = LiveView(console, f"{name} at {session.url}/v1", plan.tiers)
        showing = asyncio.create_task(view.follow(session.engines))
        try:
            raise await session.failure()
        finally:
            showing.cancel()
