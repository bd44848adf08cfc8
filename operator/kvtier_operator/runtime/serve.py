"""`kvtier run` from start to end: start, wait until ready, show, stop."""

import asyncio

from kvtier_common.terminal.console import PlainConsole
from kvtier_operator.planning.plan import Plan
from kvtier_operator.runtime.gateway.routing import local_routing, picker_note, routing_note
from kvtier_operator.runtime.live import LiveView
from kvtier_operator.runtime.session import RunningEngine, RunOptions, Session


async def serve(plan: Plan, options: RunOptions) -> None:
    """Run `plan` until it is cancelled or an engine fails.

    Raises:
        RuntimeFailedError: A process could not be started or died; everything else has been stopped.
    """
    console = PlainConsole(soft_wrap=True)
    name, replicas = plan.resource.metadata.name, plan.resource.spec.least_replicas
    session = Session(options, plan.engine, replicas, local_routing(plan), console.print)
    if note := routing_note(plan):
        console.print(note)
    console.print(f"starting {replicas} x vLLM for {name}; logs in {options.folder}")

    def print_state(engine: RunningEngine) -> None:
        console.print(f"{engine.name} is {engine.state} at {engine.url}")

    async with session:
        await session.ready(print_state)
        if (picker := session.picker_url) and (explain := session.explain_url):
            console.print(picker_note(picker, explain))
        console.print(f"ready: OpenAI-compatible at {session.url}/v1 (Ctrl-C stops)")
        view = LiveView(console, f"{name} at {session.url}/v1", plan.tiers)
        showing = asyncio.create_task(view.follow(session.engines))
        try:
            raise await session.failure()
        finally:
            showing.cancel()
