"""The benchmark's own store: that it holds, can be slow, is read whole, and ends with who started it."""

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from tests.shared.stores import ENOUGH_S, HOST
from tests.shared.waiting import eventually
from tests.unit.connector.remote.cases import content, room_for, value_of

from kvtier_connector.bench.store import server
from kvtier_connector.bench.store.relay import slow_way
from kvtier_connector.bench.store.server import BenchStore, bench_store
from kvtier_connector.bench.store.wire import wire_to
from kvtier_connector.core.remote.resp.connect import Access, connect
from kvtier_connector.core.remote.resp.url import RespUrl
from kvtier_connector.core.remote.urls import Address
from kvtier_connector.errors import ConnectorError, RemoteError

MIB = 1 << 20
BLOCKS = 4


def test_blocks_go_there_and_back(tmp_path: Path) -> None:
    with bench_store(tmp_path / "store.log", 64 * MIB) as store:
        with wire_to(store.access, MIB, BLOCKS, connections=2) as wire:
            values = store.values
            assert values >= BLOCKS
            for moved in (wire.read_plainly(), wire.read(), wire.write()):
                assert moved.size_bytes == BLOCKS * MIB
                assert moved.seconds > 0
                assert moved.cpu_s_per_gib > 0
        store.wait_until_written(0, 0.0, ENOUGH_S)
        with pytest.raises(ConnectorError, match="the store was given nothing within 0 s"):
            store.wait_until_written(values, 0.0, 0.0)


def test_a_slow_way_brings_all_and_no_sooner(tmp_path: Path) -> None:
    value = value_of(b"key", MIB)
    with bench_store(tmp_path / "store.log", 64 * MIB) as store:
        with slow_way(store.port, 4 * MIB, tmp_path / "relay.log") as port:
            connection = connect(Access(RespUrl((Address(HOST, port),), tls=False, database=0)))
            start_s = time.monotonic()
            connection.put(value, 0, ENOUGH_S)
            room = room_for(b"key", MIB)
            connection.request(room)
            assert connection.receive(ENOUGH_S)
            assert time.monotonic() - start_s > 2 * MIB / (4 * MIB)
            assert content(room) == content(value)
        with pytest.raises(RemoteError):
            connection.sizes([b"key"], ENOUGH_S)


def test_without_a_program_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "store_program", lambda: None)
    with (
        pytest.raises(ConnectorError, match=r"no valkey-server or redis-server is installed.*redis-server"),
        bench_store(tmp_path / "store.log", MIB),
    ):
        pass


def test_it_ends_when_who_started_it_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from kvtier_connector.bench.store.server import bench_store\n"
        f"with bench_store(Path({str(tmp_path / 'store.log')!r}), {MIB}) as store:\n"
        "    print(store.port, flush=True); sys.stdin.read()"
    )
    starter = subprocess.Popen(  # noqa: S603 - our own
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert starter.stdout
    store = BenchStore(int(starter.stdout.readline()))
    assert store.values == 0
    family = psutil.Process(starter.pid).children(recursive=True)
    assert len(family) == 2
    starter.kill()
    starter.communicate()
    eventually(lambda: not any(process.is_running() for process in family), "end of the store")
