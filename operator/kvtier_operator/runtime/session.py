"""A Plan running on this machine: its processes, ready, behind one URL, and stopped together."""

import asyncio
import shutil
import signal
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from kvtier_operator.errors import RuntimeFailedError
from kvtier_operator.planning.base.container_parts import EnginePlan
from kvtier_operator.planning.envoy.gateway import Address
from kvtier_operator.runtime.gateway import LocalGateway, Routing
from kvtier_operator.runtime.machine import engine_name
from kvtier_operator.runtime.process import (
    LOOPBACK,
    Command,
    SupervisedProcess,
    death,
    free_ports,
    numeric,
    require_free,
    wait_ready,
)
from kvtier_operator.runtime.translate import DEFAULT_PROGRAM, LocalEngine, Placement, to_local

# A machine without a GPU compiles and loads slowly whatever the model: below this, no start-up is too slow.
MINIMUM_STARTUP_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to run a Plan here."""

    host: str  # address to listen on
    port: int  # port of the one URL
    folder: Path  # logs, files and volumes
    model: Path | None = None  # local folder of the model; None to take the Plan's
    program: tuple[str, ...] = DEFAULT_PROGRAM  # what understands vLLM's arguments
    startup_s: float = MINIMUM_STARTUP_S  # how long an engine may take to be ready


class EngineState(StrEnum):
    """Where an engine stands."""

    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"


@dataclass(slots=True)
class RunningEngine:
    """One engine of a run."""

    name: str
    url: str  # its own base URL
    process: SupervisedProcess  # vLLM
    state: EngineState = EngineState.STARTING  # where it stands


@dataclass(slots=True)
class Session:
    """A running Plan, an asynchronous context: on entering the processes start, on leaving all end."""

    options: RunOptions  # how it runs
    plan: EnginePlan  # the engine, as the Plan has it
    replicas: int  # how many engines
    # how the one URL finds an engine, where there are several
    routing: Routing = field(default_factory=Routing)
    # is told, in one line, what a person should know while it runs
    say: Callable[[str], None] = lambda _: None
    engines: list[RunningEngine] = field(default_factory=list)  # the engines, once entered
    # what is in front of several engines, once entered; None in front of one
    gateway: LocalGateway | None = None
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    @property
    def url(self) -> str:
        """Base URL of the OpenAI-compatible server in front."""
        return f"http://{self.options.host}:{self.options.port}"

    async def __aenter__(self) -> Self:
        require_free(self.options.host, self.options.port)
        try:
            engines = self.local_engines()
            for local in engines:
                await self._start(local)
            self.gateway = self.local_gateway(engines)
            if self.gateway is not None:
                await self._stack.enter_async_context(self.gateway)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def wait_ready(self, changed: Callable[[RunningEngine], None] = lambda _: None) -> None:
        """Wait until all engines answer and the one URL does; raises where one ends or takes too long."""
        waiting = [asyncio.create_task(self._wait_engine_ready(engine, changed)) for engine in self.engines]
        try:
            await asyncio.gather(*waiting)
        finally:
            for task in waiting:
                task.cancel()
        if self.gateway is not None:
            await self.gateway.open()

    async def failure(self) -> RuntimeFailedError:
        """Wait until any engine, or Envoy, ends by itself and return the error that says why."""
        endings = [asyncio.create_task(self._engine_failure(engine)) for engine in self.engines]
        if self.gateway is not None:
            endings.append(asyncio.create_task(self.gateway.failure()))
        try:
            done, _ = await asyncio.wait(endings, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in endings:
                task.cancel()
        return done.pop().result()

    def local_engines(self) -> list[LocalEngine]:
        """The engines as processes, on ports that are free now."""
        options = self.options
        # behind a gateway nobody else needs to reach them
        host = options.host if self.replicas == 1 else LOOPBACK
        ports = (options.port,) if self.replicas == 1 else free_ports(self.replicas, host)
        places = [
            Placement(
                name=engine_name(number),
                host=host,
                port=port,
                folder=options.folder / engine_name(number),
                model=options.model,
            )
            for number, port in enumerate(ports)
        ]
        return [to_local(self.plan, place, options.program) for place in places]

    def local_gateway(self, engines: Sequence[LocalEngine]) -> LocalGateway | None:
        """What is in front of several engines; None in front of one, which has the one URL itself."""
        if self.replicas == 1:
            return None
        options = self.options
        return LocalGateway(
            listen=Address(numeric(options.host), options.port),
            engines=[Address(LOOPBACK, local.port) for local in engines],
            routing=self.routing,
            folder=options.folder,
            say=self.say,
        )

    async def _start(self, local: LocalEngine) -> None:
        materialise(local)
        # after the processes have ended, as a pod's volumes go after its containers
        self._stack.callback(discard, local)
        for command in local.sidecars:
            await self._supervise(command)
        process = await self._supervise(local.engine)
        self.engines.append(RunningEngine(local.engine.name, local.url, process))

    async def _supervise(self, command: Command) -> SupervisedProcess:
        process = SupervisedProcess(command, self.options.folder / f"{command.name}.log")
        return await self._stack.enter_async_context(process)

    async def _wait_engine_ready(
        self, engine: RunningEngine, changed: Callable[[RunningEngine], None]
    ) -> None:
        try:
            await wait_ready(engine.process, f"{engine.url}/health", self.options.startup_s)
        except RuntimeFailedError:
            engine.state = EngineState.FAILED
            changed(engine)
            raise
        engine.state = EngineState.READY
        changed(engine)

    async def _engine_failure(self, engine: RunningEngine) -> RuntimeFailedError:
        await engine.process.wait()
        engine.state = EngineState.FAILED
        return death(engine.process, "while it was serving")


def materialise(local: LocalEngine) -> None:
    """Make the folders and write the files that a local engine needs."""
    for folder in local.folders:
        folder.mkdir(parents=True, exist_ok=True)
    for path, content in local.files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def discard(local: LocalEngine) -> None:
    """Remove the volumes that go with a pod: a disk tier takes all of its capacity from the start."""
    for folder in local.scratch:
        shutil.rmtree(folder, ignore_errors=True)


INTERRUPTED: Final = 130  # a shell's exit status for Ctrl-C: 128 + SIGINT

Result = TypeVar("Result")


async def until_signalled(work: Coroutine[Any, Any, Result]) -> Result | None:
    """Do `work` to its end; on SIGINT or SIGTERM cancel it, let it clean up, and return None.

    Signals that come while it cleans up change nothing: each step of a clean-up has its own bound.
    """
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    signalled = False

    def stop() -> None:
        nonlocal signalled
        if not signalled:
            signalled = True
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    try:
        return await task
    except asyncio.CancelledError:
        if signalled:
            return None
        raise
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
