"""An attack from its beginning to its end: a server, its neighbour, and another neighbour of another server.

The second one is nobody's victim: what it sees meanwhile is the machine's.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import sleep
from typing import Final

from tests.cluster.harness.programs.ports import free_ports
from tests.picker.attacks import neighbour
from tests.picker.attacks.attackers.tally import Tally
from tests.picker.attacks.attackers.target import Target
from tests.picker.attacks.catalogue import Attack
from tests.picker.attacks.child import Child, running_child
from tests.picker.attacks.memory import peak_bytes
from tests.picker.attacks.neighbour import Report
from tests.picker.attacks.rendered import rendered
from tests.picker.harness.fleet import running_fleet_process
from tests.picker.harness.health import is_serving
from tests.picker.harness.pickers.own import Own, OwnStart, running_own
from tests.picker.standalone.placed import NOBODY, Wanted, running_gateway

USUALLY_S: Final = 2.0
_PROBE_S: Final = 1.0
_PROBES: Final = 3
"""That fail one after another before a container is ended: Kubernetes' default."""
_ENGINES: Final = 3
_POD_OF_ATTACKER: Final = 3
_MODULE: Final = "tests.picker.attacks"


@dataclass(frozen=True, slots=True)
class Victim:
    """A running server.

    Attributes:
        target: What is attacked of it.
        pids: Its processes, each with the memory that its container may have.
        own: It, where it is the picker.
        gateway: Whether it speaks HTTP.
    """

    target: Target
    pids: Mapping[int, int]
    own: Own | None = None
    gateway: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """What came of an attack.

    Attributes:
        before: The neighbour's picks before it.
        during: While it went on, those begun then.
        elsewhere: Picks of another server's neighbour in that time.
        after: Picks after it.
        tally: What happened to the attacker.
        peak_bytes: Memory at its peak, of the server's process that came nearest to its limit.
        limit_bytes: The rendered limit of that.
        log: What it said meanwhile.
        alive: Whether its health port said so each second; nothing for a bare server, which has none.
    """

    before: Report
    during: Report
    elsewhere: Report
    after: Report
    tally: Tally
    peak_bytes: int
    limit_bytes: int
    log: list[str] = field(default_factory=list)
    alive: list[bool] = field(default_factory=list)

    @property
    def restarted(self) -> bool:
        """Whether Kubernetes would have ended it, which asks three times."""
        failures = "".join("." if each else "x" for each in self.alive)
        return "x" * _PROBES in failures

    @property
    def usual_p99_s(self) -> float:
        """The neighbour's time on this machine, as busy as it was."""
        return max(self.before.quantile_s(0.99), self.elsewhere.quantile_s(0.99))

    def slowdown(self, quantile: float) -> float:
        """How many times that its picks took under attack."""
        return self.during.quantile_s(quantile) / self.usual_p99_s


@contextmanager
def victim_of(attack: Attack, folder: Path) -> Iterator[Victim]:
    """What the attack is on, as it is rendered."""
    start = picker_under if attack.gateway is None else _gateway_under
    with start(attack, folder) as victim:
        yield victim


@contextmanager
def _gateway_under(attack: Attack, folder: Path) -> Iterator[Victim]:
    """A resource's own gateway with its picker, and with what reads models where it knows other resources."""
    wanted = Wanted(settings=attack.gateway or None)
    with ExitStack() as stack:
        fleet = stack.enter_context(running_fleet_process(_ENGINES))
        (beside := folder / "picker").mkdir()
        start = OwnStart(wanted.picker_config(), tls=True)
        own = stack.enter_context(running_own(start, fleet.pods, beside))
        places = {"case-engine": fleet.pods, "case-picker": [own.address], "other-gateway": [NOBODY]}
        envoy = stack.enter_context(running_gateway(wanted, places, folder))
        memory = {envoy.process.pid: wanted.memory_bytes("gateway")}
        if envoy.model_router is not None:
            memory[envoy.model_router.pid] = wanted.memory_bytes("model-router")
        yield Victim(Target(envoy.ports["gateway"]), memory, gateway=True)


@contextmanager
def picker_under(attack: Attack, folder: Path) -> Iterator[Victim]:
    """The picker as it is rendered, before engines of which the attacker may be one."""
    with ExitStack() as stack:
        fleet = stack.enter_context(running_fleet_process(_ENGINES))
        events, replay = free_ports(2)
        network = fleet.ips[0].rpartition(".")[0]
        pod = (f"{network}.{1 + _POD_OF_ATTACKER}", fleet.port)
        pods = [pod] if attack.alone else [*fleet.pods, *([pod] if attack.pod else [])]
        more = attack.config
        if "%" in more:
            more %= {"events_port": events, "replay_port": replay}
        start = OwnStart(f"{rendered().config}\n{more}", files=attack.files)
        own = stack.enter_context(running_own(start, pods, folder))
        target = Target(own.port, own.explain_port, f"{pod[0]}:{pod[1]}", events, replay)
        yield Victim(target, {own.process.pid: rendered().limit_bytes}, own)


@contextmanager
def bare_server(files: int = 0) -> Iterator[Victim]:
    """A trivial grpc.aio server."""
    [port] = free_ports(1)
    with running_child(f"{_MODULE}.bare", [f"--port={port}"], files) as child:
        yield Victim(Target(port), {child.pid: rendered().limit_bytes})


def attack_server(
    name: str,
    attack: Attack,
    victim: Victim,
    usually_s: float = USUALLY_S,
    deadline_s: float = neighbour.DEADLINE_S,
) -> Row:
    """Attacks a server for as long as the attack says.

    Args:
        name: The attack's.
        attack: It.
        victim: The server.
        usually_s: How long the neighbour is looked at before and, half of it, afterwards.
        deadline_s: Of the neighbour's picks.
    """
    with ExitStack() as stack:
        other = stack.enter_context(bare_server())
        beside, away = (
            stack.enter_context(
                _neighbour(each, new_connections=attack.new_connections, deadline_s=deadline_s)
            )
            for each in (victim, other)
        )
        target = json.dumps(asdict(victim.target))
        attacker = stack.enter_context(
            running_child(f"{_MODULE}.attacker", [name, f"--target={target}", f"--seconds={attack.seconds}"])
        )
        neighbour.report(beside)  # the first picks make connections
        sleep(usually_s)
        before = neighbour.report(beside)
        neighbour.report(away)
        said = len(_log(victim))
        attacker.tell("go")
        with _probe(victim) as alive:
            tally = Tally(attacker.said())
        during, elsewhere = neighbour.report(beside), neighbour.report(away)
        log = _log(victim)[said:]
        peaks = [(peak_bytes(pid), limit) for pid, limit in victim.pids.items()]
        peak, limit = max(peaks, key=lambda memory: memory[0] / memory[1])
        sleep(usually_s / 2)
        after = neighbour.report(beside)
        return Row(before, during, elsewhere, after, tally, peak, limit, log, alive)


@contextmanager
def _neighbour(victim: Victim, *, new_connections: bool, deadline_s: float) -> Iterator[Child]:
    more = [
        *(["--new-connections"] if new_connections else []),
        *(["--gateway"] if victim.gateway else []),
        f"--deadline-s={deadline_s}",
    ]
    address = f"--address=127.0.0.1:{victim.target.port}"
    with running_child(f"{_MODULE}.neighbour", [address, *more]) as child:
        yield child


@contextmanager
def _probe(victim: Victim) -> Iterator[list[bool]]:
    """Asks its health port as Kubernetes does, once a second, until the end."""
    alive: list[bool] = []
    ended = threading.Event()

    def ask(port: int) -> None:
        while not ended.wait(_PROBE_S):
            alive.append(is_serving(f"127.0.0.1:{port}", "liveness"))

    with ThreadPoolExecutor() as beside:
        if victim.own is not None:
            beside.submit(ask, victim.own.health_port)
        try:
            yield alive
        finally:
            ended.set()


def _log(victim: Victim) -> list[str]:
    return victim.own.process.log.read_text(errors="replace").splitlines() if victim.own else []
