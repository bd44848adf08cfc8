"""A real cluster of three behind one connection."""

from collections.abc import Generator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.shared.stores import ENOUGH_S, Store, running_cluster
from tests.unit.connector.remote.cases import content, room_for, untouched, value_of
from tests.unit.connector.remote.tier_engine import BLOCK_BYTES, engines

from kvtier_connector.core.remote.resp import cluster
from kvtier_connector.core.remote.resp.connect import connect
from kvtier_connector.core.remote.resp.slots import SLOTS, slot_of
from kvtier_connector.core.remote.resp.url import RespUrl
from kvtier_connector.core.remote.store import StoreConnection
from kvtier_connector.errors import RemoteError, RemoteMovedError

KEYS = [b"kvtier:share:{%d}:0" % number for number in range(40)]


@pytest.fixture
def stores(program: str, tmp_path: Path) -> Generator[list[Store]]:
    with running_cluster(program, tmp_path) as stores:
        yield stores


def filled(stores: list[Store]) -> StoreConnection:
    """A connection to the cluster with a value under each key."""
    connection = stores[0].connect()
    for key in KEYS:
        connection.put(value_of(key, 1000), 0, ENOUGH_S)
    return connection


def owner(key: bytes) -> int:
    return slot_of(key) * 3 // SLOTS


def test_a_key_goes_to_the_server_that_has_its_slot(stores: list[Store]) -> None:
    for key in (b"", b"{}", b"{}a{b}", b"a{b}c", b"{b", b"}{b}{c}", *KEYS):
        assert stores[0].ask(b"CLUSTER", b"KEYSLOT", key) == slot_of(key)
    with closing(filled(stores)) as connection:
        assert [store.ask("DBSIZE") for store in stores] == [
            sum(owner(key) == number for key in KEYS) for number in range(3)
        ]
        assert connection.sizes([*KEYS, b"absent"], ENOUGH_S) == [1000] * len(KEYS) + [0]
        rooms = [room_for(key, 1000) for key in [*KEYS, b"absent"]]
        for room in rooms:
            connection.request(room)
        for room in rooms[:-1]:
            assert connection.receive(ENOUGH_S)
            assert content(room) == content(value_of(room.key, 1000))
        assert not connection.receive(ENOUGH_S)
        connection.delete(KEYS, ENOUGH_S)
        assert connection.sizes(KEYS, ENOUGH_S) == [0] * len(KEYS)
        assert connection.facts(ENOUGH_S).maxmemory_bytes == 3 * 300 << 20


def test_a_slot_that_moved_is_found_by_the_next_connection(stores: list[Store]) -> None:
    key = next(key for key in KEYS if owner(key) == 0)
    target = stores[1].ask("CLUSTER", "MYID")
    assert isinstance(target, bytes)
    connections = [filled(stores) for _ in range(4)]
    stores[0].ask("FLUSHALL")  # a slot with keys in it is not given away
    for store in stores:
        store.ask(b"CLUSTER", b"SETSLOT", b"%d" % slot_of(key), b"NODE", target)
    connections[3].request(room_for(key, 1000))
    with closing(connections[0]) as asked:  # of the others it tells all the same
        assert asked.sizes(KEYS, ENOUGH_S) == [1000 if owner(key) else 0 for key in KEYS]
        assert asked.is_outdated
    with pytest.raises(RemoteMovedError, match="MOVED"):
        connections[1].put(value_of(key, 1000), 0, ENOUGH_S)
    with pytest.raises(RemoteMovedError, match="MOVED"):
        connections[2].delete([key], ENOUGH_S)
    with pytest.raises(RemoteMovedError, match="MOVED"):
        connections[3].receive(ENOUGH_S)
    with closing(stores[0].connect()) as connection:
        connection.put(value_of(key, 1000), 0, ENOUGH_S)
        assert connection.sizes([key], ENOUGH_S) == [1000]
        assert stores[1].ask("CLUSTER", "COUNTKEYSINSLOT", str(slot_of(key))) == 1


def test_a_slot_that_is_moving_is_absent_for_a_while(
    stores: list[Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = next(key for key in KEYS if owner(key) == 0)
    target = stores[1].ask("CLUSTER", "MYID")
    assert isinstance(target, bytes)
    with closing(stores[0].connect()) as connection:
        stores[0].ask(b"CLUSTER", b"SETSLOT", b"%d" % slot_of(key), b"MIGRATING", target)
        assert connection.sizes([key], ENOUGH_S) == [0]
        assert not connection.is_outdated, "it moves for a while"
        monkeypatch.setattr(cluster, "LACKING_S", 0.0)
        assert connection.is_outdated


def test_without_one_server_the_others_serve(stores: list[Store], monkeypatch: pytest.MonkeyPatch) -> None:
    before = filled(stores)
    stores[2].process.kill()
    with pytest.raises(RemoteError):
        before.sizes(KEYS, ENOUGH_S)
    lost = next(key for key in KEYS if owner(key) == 2)
    several = RespUrl((stores[2].address, stores[0].address), tls=False, database=0)
    with closing(connect(replace(stores[0].access, url=several))) as connection:
        assert connection.sizes(KEYS, ENOUGH_S) == [0 if owner(key) == 2 else 1000 for key in KEYS]
        connection.put(value_of(lost, 10), 0, ENOUGH_S)
        room = room_for(lost, 10)
        connection.request(room)
        assert not connection.receive(ENOUGH_S)
        assert untouched(room)
    with closing(stores[0].connect()) as connection:
        assert not connection.is_outdated
        monkeypatch.setattr(cluster, "LACKING_S", 0.0)  # and is looked for again
        assert connection.is_outdated


def test_a_cluster_that_loses_its_slots_is_down_until_it_has_them(stores: list[Store]) -> None:
    own = [(str(n * SLOTS // 3), str((n + 1) * SLOTS // 3 - 1)) for n in range(3)]
    with engines(stores[0], "m", connections=4) as [engine]:
        for store, slots in zip(stores, own, strict=True):
            store.ask("CLUSTER", "DELSLOTSRANGE", *slots)
        while not engine.tier.is_down:
            engine.ask(range(len(engine.memory) // BLOCK_BYTES))
        for store, slots in zip(stores, own, strict=True):
            store.ask("CLUSTER", "ADDSLOTSRANGE", *slots)
        engine.wait()
