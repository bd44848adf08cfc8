"""Short rounds in turn: what the machine does besides then weighs on every side alike."""

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.picker.through_envoy.load import Generator, Load
from tests.bench.picker.through_envoy.shapes import Template

_TICK_S: Final = 1.0 / os.sysconf("SC_CLK_TCK")
# Fields of /proc/<pid>/stat after the command's name (proc(5)): utime and stime.
_USER, _SYSTEM = 11, 12


@dataclass(frozen=True, slots=True)
class Side:
    """One of those that are compared.

    Attributes:
        name: In the figures.
        address: Where Envoy listens for it.
        picker_pid: Process of its picker, stopped while it is another's turn; None where there is none.
    """

    name: str
    address: tuple[str, int]
    picker_pid: int | None = None


@dataclass(frozen=True, slots=True)
class Rounds:
    """How a comparison goes.

    Attributes:
        rounds: Turns of each side.
        warm_up_s: Load before each turn that is not counted: a picker that was stopped has old metrics.
        duration_s: Load of each turn.
        connections: Connections, each with one request at a time.
    """

    rounds: int = 5
    warm_up_s: float = 1.0
    duration_s: float = 4.0
    connections: int = 32


@dataclass(frozen=True, slots=True)
class Turn:
    """One side's part of one round.

    Attributes:
        load: What was answered.
        load_cpu_s: Processor time of this process, which is the load.
        picker_cpu_s: Processor time of the picker; 0 without one.
    """

    load: Load
    load_cpu_s: float
    picker_cpu_s: float


def compare(
    sides: Sequence[Side], templates: Sequence[Template], how: Rounds, say: Callable[[str], None]
) -> Mapping[str, list[Turn]]:
    """Loads the sides in turn, each second round in the opposite order.

    Args:
        sides: What to compare.
        templates: The requests; every side gets the same.
        how: Length and number of rounds.
        say: Takes a line a turn.

    Returns:
        The turns of each side by name.

    Raises:
        LoadError: A gateway does not answer.
    """
    measured: dict[str, list[Turn]] = {side.name: [] for side in sides}
    with ExitStack() as stack:
        generators = {
            side.name: stack.enter_context(
                closing(Generator(side.address, templates, how.connections, seed=number + 1))
            )
            for number, side in enumerate(sides)
        }
        for each in sides:
            stack.enter_context(_stopped(each.picker_pid))
        for number in range(how.rounds):
            for side in sides if number % 2 == 0 else reversed(sides):
                with _running(side.picker_pid):
                    generators[side.name].run(how.warm_up_s)
                    turn = _turn(generators[side.name], side.picker_pid, how.duration_s)
                measured[side.name].append(turn)
                load = turn.load
                say(
                    f"round {number + 1} {side.name}: {load.rps:,.0f}/s, "
                    f"p50 {1e3 * load.quantile_s(0.5):.2f} ms, p99 {1e3 * load.quantile_s(0.99):.2f} ms, "
                    f"{load.refused} refused"
                )
    return measured


def _turn(generator: Generator, picker_pid: int | None, duration_s: float) -> Turn:
    own_s, picker_s = time.process_time(), _cpu_s(picker_pid)
    load = generator.run(duration_s)
    return Turn(load, time.process_time() - own_s, _cpu_s(picker_pid) - picker_s)


def _cpu_s(pid: int | None) -> float:
    if pid is None:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[_USER]) + int(fields[_SYSTEM])) * _TICK_S


@contextmanager
def _stopped(pid: int | None) -> Iterator[None]:
    """A process that runs on afterwards."""
    if pid is not None:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        if pid is not None:
            os.kill(pid, signal.SIGCONT)


@contextmanager
def _running(pid: int | None) -> Iterator[None]:
    """A stopped process that runs for a while."""
    if pid is not None:
        os.kill(pid, signal.SIGCONT)
    try:
        yield
    finally:
        if pid is not None:
            os.kill(pid, signal.SIGSTOP)
