"""Pods of a real InferencePool come and go every second while requests keep coming."""

import http.client
import itertools
import json
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.cluster.harness.programs.tools import Say
from tests.cluster.harness.providers.provider import Cluster
from tests.picker.harness.bootstrap import Gateway
from tests.picker.harness.client import get
from tests.picker.harness.engine import ENGINE
from tests.picker.harness.envoy import running_envoy
from tests.picker.harness.fleet import Fleet, running_fleet
from tests.picker.harness.pickers.own import Own, OwnStart, running_own
from tests.picker.harness.pool import Pool, made_pool
from tests.picker.server.conftest import CONFIG
from tests.shared.waiting import eventually

PODS, CLIENTS, PROMPTS = 6, 8, 12
TICK_S = 1.0


@dataclass(slots=True)
class Load:
    """Clients that ask without a pause.

    Attributes:
        failures: Start and end of each request that was not answered with 200.
        answered: Requests answered by each engine.
        began_s: When the last request of each client began.
    """

    port: int
    stop: threading.Event = field(default_factory=threading.Event)
    failures: list[tuple[float, float]] = field(default_factory=list)
    answered: Counter[str] = field(default_factory=Counter)
    began_s: dict[int, float] = field(default_factory=dict)

    def client(self, seed: int) -> None:
        numbers = random.Random(seed)  # noqa: S311 - which prompt
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        while not self.stop.is_set():
            # some are new, and may go anywhere
            known = numbers.random() < 0.7
            prompt = f"prompt {numbers.randrange(PROMPTS) if known else numbers.random()} " * 500
            self.began_s[seed] = began_s = time.monotonic()
            connection.request("POST", "/v1/completions", json.dumps({"model": "fake", "prompt": prompt}))
            answer = connection.getresponse()
            answer.read()
            if answer.status == 200:
                self.answered[answer.headers[ENGINE.decode()]] += 1
            else:
                self.failures.append((began_s, time.monotonic()))
        connection.close()

    def until_answered(self) -> None:
        """Waits until every request that is under way has its answer."""
        now_s = time.monotonic()
        eventually(lambda: all(each > now_s for each in self.began_s.values()), "answers to all clients")


@dataclass(slots=True)
class Turnover:
    """Each tick one pod goes, in one of two ways, and one that went comes back.

    Attributes:
        killed_s: When each killed pod died, and when the picker no longer picked it.
    """

    fleet: Fleet
    pool: Pool
    own: Own
    load: Load
    killed_s: list[tuple[float, float]] = field(default_factory=list)
    gone: deque[str] = field(default_factory=deque)

    def run(self, seconds: float) -> None:
        """A pod is told to go and goes when its requests are answered, or dies and is missed later."""
        turns = itertools.cycle(self.fleet.addresses)
        waiting = threading.Event()
        until = time.monotonic() + seconds
        for number in itertools.count():
            address = next(turns)
            ip = address.rpartition(":")[0]
            began_s = time.monotonic()
            if number % 2:
                self.pool.set_ready([ip], ready=False)
            else:
                self.fleet.stop(address)
            self.gone.append(address)
            self._until_seen()
            if not number % 2:
                self.killed_s.append((began_s, time.monotonic()))
            waiting.wait(max(0.0, began_s + TICK_S - time.monotonic()))
            if number % 2:
                self.load.until_answered()
                self.fleet.stop(address)
            self.pool.remove([ip])
            if len(self.gone) > PODS // 2:
                self._back()
            if time.monotonic() > until:
                break
        while self.gone:
            self._back()

    def _back(self) -> None:
        address = self.gone.popleft()
        self.fleet.start(address)
        self.pool.put([address.rpartition(":")[0]])
        self._until_seen()

    def _until_seen(self) -> None:
        """Waits until the picker picks from the pods that are there, and from no others."""
        self.own.process.wait_until(lambda: picked_from(self.own) == PODS - len(self.gone))


@pytest.fixture
def engines() -> Iterator[Fleet]:
    with running_fleet(PODS) as started:
        yield started


@pytest.mark.parametrize("seconds", [12, pytest.param(120, marks=pytest.mark.long)])
def test_no_request_goes_to_a_pod_that_has_gone(
    engines: Fleet, control_plane: Cluster, tmp_path: Path, say: Say, seconds: int
) -> None:
    with (
        made_pool(control_plane, f"turnover-{seconds}", engines.port, engines.ips) as pool,
        running_own(OwnStart(CONFIG), pool, tmp_path) as own,
        running_envoy([Gateway("one", own.address)], tmp_path) as envoy,
    ):
        load = Load(envoy.ports["one"])
        clients = [threading.Thread(target=load.client, args=[seed]) for seed in range(CLIENTS)]
        for client in clients:
            client.start()
        turnover = Turnover(engines, pool, own, load)
        try:
            turnover.run(seconds)
            before = Counter(load.answered)
            wait_for_all(own, engines, load, before)
        finally:
            load.stop.set()
            for client in clients:
                client.join()
    # nothing is lost with a pod that was told to go, nor with a killed one once the picker has seen it
    too_late = [
        began_s
        for began_s, ended_s in load.failures
        if not any(killed_s < ended_s and began_s < seen_s for killed_s, seen_s in turnover.killed_s)
    ]
    slowest_s = max(seen_s - killed_s for killed_s, seen_s in turnover.killed_s)
    say(
        f"{sum(load.answered.values())} answered; {len(load.failures)} lost with {len(turnover.killed_s)} "
        f"killed pods, which were picked for up to {slowest_s:.2f} s more"
    )
    assert not too_late
    assert load.answered


def picked_from(own: Own) -> float:
    """How many pods the picker may pick."""
    lines = get(f"{own.http}/metrics").body.decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("kvtier_picker_pods "))


def wait_for_all(own: Own, engines: Fleet, load: Load, before: Counter[str]) -> None:
    """Every pod that came back is picked again."""
    own.process.wait_until(
        lambda: all(load.answered[address] > before[address] for address in engines.addresses)
    )
