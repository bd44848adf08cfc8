"""A Plan running on this machine: its processes, ready, behind one URL, and stopped together."""

import asyncio
import shutil
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final, Self

from kvtier_operator.errors import RuntimeFailedError
from kvtier_operator.planning.plan import EnginePlan
from kvtier_operator.runtime.folders import engine_name
from kvtier_operator.runtime.process.ports import free_ports, require_free
from kvtier_operator.runtime.process.supervised import Command, SupervisedProcess
from kvtier_operator.runtime.readiness import death, wait_ready
from kvtier_operator.runtime.translate import DEFAULT_PROGRAM, LocalEngine, Placement, to_local

# A machine without a GPU compiles and loads slowly whatever the model: below this, no start-up is too slow.
MINIMUM_STARTUP_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to run a Plan here.

    Attributes:
        host: Address to listen on.
        port: Port of the one URL.
        folder: Logs, files and volumes.
        model: Local folder of the model; None to take the Plan's.
        program: What understands vLLM's arguments.
        startup_s: How long an engine may take to be ready.
    """

    host: str
    port: int
    folder: Path
    model: Path | None = None
    program: tuple[str, ...] = DEFAULT_PROGRAM
    startup_s: float = MINIMUM_STARTUP_S


class EngineState(StrEnum):
    """Where an engine stands."""

    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"


@dataclass(slots=True)
class RunningEngine:
    """One engine of a run.

    Attributes:
        name: Its name.
        url: Its own base URL.
        process: vLLM.
        state: Where it stands.
    """

    name: str
    url: str
    process: SupervisedProcess
    state: EngineState = EngineState.STARTING


@dataclass(slots=True)
class Session:
    """A running Plan; use it as an asynchronous context. On entering the processes start, on leaving all end.

    Attributes:
        options: How it runs.
        plan: The engine, as the Plan has it.
        replicas: How many engines.
        engines: The engines, once entered.
    """

    options: RunOptions
    plan: EnginePlan
    replicas: int
    engines: list[RunningEngine] = field(default_factory=list)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    @property
    def url(self) -> str:
        """Base URL of the OpenAI-compatible server in front."""
        return f"http://{self.options.host}:{self.options.port}"

    async def __aenter__(self) -> Self:
        require_free(self.options.host, self.options.port)
        try:
            for local in self.local_engines():
                await self._start(local)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def ready(self, changed: Callable[[RunningEngine], None] = lambda _: None) -> None:
        """Wait until every engine answers and the one URL does.

        Args:
            changed: Is told of each engine whose state changed.

        Raises:
            RuntimeFailedError: An engine ended or took too long.
        """
        waiting = [asyncio.create_task(self._engine_ready(engine, changed)) for engine in self.engines]
        try:
            await asyncio.gather(*waiting)
        finally:
            for task in waiting:
                task.cancel()
        if len(self.engines) > 1:
            await self._start_proxy()

    async def failure(self) -> RuntimeFailedError:
        """Wait until any engine ends by itself and return the error that says why."""
        endings = {asyncio.create_task(engine.process.wait()): engine for engine in self.engines}
        try:
            done, _ = await asyncio.wait(endings, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in endings:
                task.cancel()
        engine = endings[done.pop()]
        engine.state = EngineState.FAILED
        return death(engine.process, "while it was serving")

    def local_engines(self) -> list[LocalEngine]:
        """The engines as processes, on ports that are free now."""
        options = self.options
        ports = (options.port,) if self.replicas == 1 else free_ports(self.replicas, options.host)
        places = [
            Placement(
                name=engine_name(number),
                host=options.host,
                port=port,
                folder=options.folder / engine_name(number),
                model=options.model,
            )
            for number, port in enumerate(ports)
        ]
        return [to_local(self.plan, place, options.program) for place in places]

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

    async def _engine_ready(self, engine: RunningEngine, changed: Callable[[RunningEngine], None]) -> None:
        try:
            await wait_ready(engine.process, f"{engine.url}/health", self.options.startup_s)
        except RuntimeFailedError:
            engine.state = EngineState.FAILED
            changed(engine)
            raise
        engine.state = EngineState.READY
        changed(engine)

    async def _start_proxy(self) -> None:
        from kvtier_operator.runtime.proxy import serve_proxy  # noqa: PLC0415 - only for several engines

        try:
            runner = await serve_proxy(
                [engine.url for engine in self.engines], self.options.host, self.options.port
            )
        except OSError as error:
            raise RuntimeFailedError(f"cannot listen on {self.url}: {error.strerror}") from error
        self._stack.push_async_callback(runner.cleanup)


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
