"""The remote tier on a real Mooncake store."""

import os
import signal
import socket
import sys
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.shared.mooncake import Mooncake, mooncake_running, stop
from tests.shared.stores import ENOUGH_S, HOST
from tests.unit.connector.remote.cases import MIB, content, room_for, untouched, value_of
from tests.unit.connector.remote.tier_engine import BLOCK_BYTES, KEYS, SLOTS, engines

from kvtier_connector.bench.remote import remote
from kvtier_connector.core.behind.tier import Presence
from kvtier_connector.core.disk.files.fingerprint import fingerprint
from kvtier_connector.core.remote.mooncake.connection import MooncakeConnection
from kvtier_connector.core.remote.mooncake.store import MooncakeStore
from kvtier_connector.core.remote.store import StoreConnection, StoreSettings, Value
from kvtier_connector.core.remote.urls import Address
from kvtier_connector.core.remote.values import BlockLayout
from kvtier_connector.errors import RemoteError, RemoteFullError, RemoteTimeoutError, SettingError

SOON_S = 0.3
long = pytest.mark.long


@pytest.fixture(scope="module")
def module_mooncake(tmp_path_factory: pytest.TempPathFactory) -> Generator[Mooncake]:
    with mooncake_running(tmp_path_factory.mktemp("mooncake")) as mooncake:
        yield mooncake


@pytest.fixture
def own_mooncake(tmp_path: Path) -> Generator[Mooncake]:
    """One that a test may kill."""
    with mooncake_running(tmp_path) as mooncake:
        yield mooncake


@pytest.fixture
def connection(module_mooncake: Mooncake) -> Generator[StoreConnection]:
    with closing(module_mooncake.connect()) as connection:
        yield connection


@long
def test_values_come_back_as_they_were_stored(connection: StoreConnection) -> None:
    sizes = [1, 32, 100_000, 4 * MIB - 64, 4 * MIB]
    stored = [value_of(b"kvtier:a/b:{%d}:0" % size, size) for size in sizes]
    for value in stored:
        connection.put(value, 0, ENOUGH_S)
    keys = [value.key for value in stored]
    assert connection.sizes([b"absent", *keys, b"gone"], ENOUGH_S) == [0, *sizes, 0]
    rooms = [room_for(value.key, value.size_bytes, pieces=4) for value in stored]
    for room in rooms:  # more than are on the way at a time
        connection.request(room)
    assert [connection.receive(ENOUGH_S) for _ in rooms] == [True] * len(rooms)
    assert [content(room) for room in rooms] == [content(value) for value in stored]


@long
def test_what_is_absent_or_of_another_length_touches_nothing(connection: StoreConnection) -> None:
    connection.put(value_of(b"key", 1000), 0, ENOUGH_S)
    rooms = [room_for(b"absent", 1000), room_for(b"key", 999), room_for(b"key", 1001), room_for(b"key", 1000)]
    for room in rooms:
        connection.request(room)
    assert [connection.receive(ENOUGH_S) for _ in rooms] == [False, False, False, True]
    assert all(untouched(room) for room in rooms[:3])


@long
def test_a_value_takes_the_place_of_another_and_can_be_removed(connection: StoreConnection) -> None:
    for size_bytes in (100, 100, 3000):
        stored = value_of(b"key%d" % size_bytes, size_bytes)
        connection.put(Value(b"rates", stored.memory), 60, ENOUGH_S)
        room = room_for(b"rates", size_bytes)
        connection.request(room)  # a lease, which keeps it from being removed gently
        assert connection.receive(ENOUGH_S)
        assert content(room) == content(stored)
    connection.delete([b"rates", b"absent"], ENOUGH_S)
    assert connection.sizes([b"rates"], ENOUGH_S) == [0]


@long
def test_one_question_for_more_keys_than_go_at_once(connection: StoreConnection) -> None:
    connection.put(value_of(b"last", 10), 0, ENOUGH_S)
    assert connection.sizes([b"absent"] * 5000 + [b"last"], ENOUGH_S) == [0] * 5000 + [10]


@long
def test_a_store_that_is_full_says_so(tmp_path: Path) -> None:
    with mooncake_running(tmp_path, segment="16MB") as small, closing(small.connect()) as connection:
        with pytest.raises(RemoteFullError, match=f"^{small.address}: put failed .-200.: no room"):
            fill(connection)
        with pytest.raises(RemoteError, match="closed"):
            connection.sizes([b"key"], ENOUGH_S)


def fill(connection: StoreConnection) -> None:
    for number in range(5):
        connection.put(value_of(b"key%d" % number, 4 * MIB), 0, ENOUGH_S)
        connection.sizes([b"key%d" % number], ENOUGH_S)  # what is used is not evicted at once


@long
def test_what_stops_in_the_middle_of_a_value_writes_to_no_memory_when_it_goes_on(
    own_mooncake: Mooncake,
) -> None:
    connection = own_mooncake.connect()
    assert isinstance(connection, MooncakeConnection)
    connection.put(value_of(b"key", 4 * MIB), 0, ENOUGH_S)
    room = room_for(b"key", 4 * MIB)
    stop(own_mooncake.memory)
    connection.request(room)
    with pytest.raises(RemoteTimeoutError, match=r"no answer within 0.3 s"):
        connection.receive(SOON_S)
    own_mooncake.memory.send(signal.SIGCONT)
    assert connection._process.wait() == -signal.SIGKILL, "who could write is gone"
    assert untouched(room)


DEEDS: dict[str, Callable[[StoreConnection], object]] = {
    "sizes": lambda connection: connection.sizes([b"key"], SOON_S),
    "put": lambda connection: connection.put(value_of(b"key", 4 * MIB), 0, SOON_S),
    "delete": lambda connection: connection.delete([b"key"], SOON_S),
    "facts": lambda connection: connection.facts(SOON_S),
    "receive": lambda connection: connection.receive(SOON_S),
}


@long
def test_every_call_ends_by_its_time_out(own_mooncake: Mooncake) -> None:
    connections = {deed: own_mooncake.connect() for deed in DEEDS}
    connections["receive"].request(room_for(b"key", 10))
    connections["receive"].receive(ENOUGH_S)
    stop(own_mooncake.master)
    connections["receive"].request(room_for(b"key", 10))
    for deed, connection in connections.items():
        with pytest.raises(RemoteTimeoutError):
            DEEDS[deed](connection)
    with pytest.raises(RemoteTimeoutError, match=f"^{own_mooncake.address}: no answer within"):
        MooncakeStore(own_mooncake.address, SOON_S).connect()


@long
def test_a_client_that_dies_is_an_error_of_its_connection_alone(module_mooncake: Mooncake) -> None:
    connection, other = module_mooncake.connect(), module_mooncake.connect()
    assert isinstance(connection, MooncakeConnection)
    os.kill(connection._process.pid, signal.SIGKILL)
    with pytest.raises(RemoteError, match="has ended by itself"):
        connection.sizes([b"key"], ENOUGH_S)
    with closing(other):
        assert other.sizes([b"absent"], ENOUGH_S) == [0]


@long
def test_one_engine_reads_what_another_has_written(module_mooncake: Mooncake) -> None:
    with engines(module_mooncake, "m", "m", share="read") as [first, second]:
        for slot in range(SLOTS):
            first.fill(slot)
        first.write(range(SLOTS))
        assert sorted(first.seen.stored) == KEYS == sorted(first.seen.released)
        assert second.ask(range(SLOTS)) == [Presence.PRESENT] * SLOTS
        second.read(range(SLOTS))
        assert all(second.has(slot) for slot in range(SLOTS))
        second.write(range(SLOTS))
        assert second.tier.take_counts().store_bytes == 0, "what is there is not sent again"


@long
def test_what_is_damaged_or_gone_is_lost_alone(
    module_mooncake: Mooncake, connection: StoreConnection
) -> None:
    with engines(module_mooncake, "m", "m", share="damaged") as [first, second]:
        for slot in range(SLOTS):
            first.fill(slot)
        first.write(range(SLOTS))
        layout = BlockLayout("damaged", lambda: fingerprint({"model": "m"}), BLOCK_BYTES)
        second.ask(range(SLOTS))
        size_bytes = layout.pieces[1] + layout.first_value_bytes - layout.pieces[0]
        connection.put(value_of(layout.key(KEYS[0], 1), size_bytes), 0, ENOUGH_S)
        connection.delete([layout.key(KEYS[1], 1)], ENOUGH_S)
        second.read(range(SLOTS))
        assert sorted(second.seen.lost) == KEYS[:2]
        assert sorted(second.seen.loaded) == KEYS[2:]
        assert connection.sizes([layout.key(KEYS[0])], ENOUGH_S) == [0], "what is damaged is removed"


@long
@pytest.mark.parametrize("part", ["master", "memory"])
def test_what_is_read_ends_when_a_part_is_killed_and_nothing_is_written_late(
    own_mooncake: Mooncake, part: str
) -> None:
    with engines(own_mooncake, "m") as [engine]:
        for slot in range(SLOTS):
            engine.fill(slot)
        engine.write(range(SLOTS))
        assert sorted(engine.seen.stored) == KEYS
        for slot in range(SLOTS):
            engine.memory[slot * BLOCK_BYTES] ^= 0xFF
        before = bytes(engine.memory)
        process = {"master": own_mooncake.master, "memory": own_mooncake.memory}[part]
        stop(process)
        engine.begin_to_read(range(SLOTS))
        process.kill()
        engine.settle()
        assert sorted(engine.seen.lost) == KEYS
        engine.wait(until_up=False)
        assert bytes(engine.memory) == before
    assert [note for note in engine.seen.notes if "the remote tier is off" in note]


@long
def test_bench_remote_measures_it(module_mooncake: Mooncake) -> None:
    ran = CliRunner().invoke(remote, ["--url", module_mooncake.url, "--capacity-mib", "100"])
    assert ran.exit_code == 0, ran.output
    assert "Mooncake, client 0." in ran.output
    assert "capacity: not told" in ran.output
    assert "GB/s" in ran.output


def test_without_the_package_it_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mooncake", None)  # as find_spec finds it: not there
    with pytest.raises(RemoteError, match=r"^the package mooncake is missing; take an image that has it"):
        MooncakeStore(Address(HOST, 1), SOON_S).connect()


def test_without_its_libraries_it_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "mooncake"
    package.mkdir()
    (package / "__init__.py").touch()
    lacking = "libibverbs.so.1: cannot open shared object file: No such file or directory"
    (package / "store.py").write_text(f"raise ImportError({lacking!r})")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    with socket.create_server((HOST, 0)) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(
            RemoteError, match=f"^{HOST}:{port}: Mooncake's client cannot be loaded: {lacking}$"
        ):
            MooncakeStore(Address(HOST, port), ENOUGH_S).connect()


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (StoreSettings("mooncake://"), "must name a host"),
        (StoreSettings("mooncake://a,b"), "of one master"),
        (StoreSettings("mooncake://a/metadata"), "of one master"),
        (StoreSettings("mooncake://a:0"), "a port from 1 to 65535"),
        (
            StoreSettings("mooncake://a", credentials_path="/c"),
            "remote_credentials_path: a Mooncake store has",
        ),
        (StoreSettings("mooncake://a", ca_path="/c"), "remote_ca_path: a Mooncake store has"),
    ],
)
def test_what_mooncake_cannot_is_refused_by_name(settings: StoreSettings, why: str) -> None:
    with pytest.raises(SettingError, match=r"^kv_connector_extra_config.remote_") as refusal:
        MooncakeStore.of(settings)
    assert why in str(refusal.value)


def test_a_master_is_named_with_or_without_its_port() -> None:
    assert MooncakeStore.of(StoreSettings("mooncake://m")).servers == ("m:50051",)
    assert MooncakeStore.of(StoreSettings("mooncake://[::1]:5")).servers == ("[::1]:5",)
