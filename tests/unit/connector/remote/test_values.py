"""Values there and back, on real servers."""

from collections.abc import Callable, Mapping
from contextlib import closing

import pytest
from tests.shared.stores import ENOUGH_S, Store
from tests.unit.connector.remote.cases import MIB, content, room_for, untouched, value_of

from kvtier_connector.core.remote.store import StoreConnection


@pytest.mark.parametrize(
    ("size_bytes", "pieces"),
    [(1, 1), (9, 2), (10, 3), (1000, 7), (MIB, 1), (4 * MIB - 64, 2), (8 * MIB, 3000)],
)
def test_a_value_comes_back_as_it_was(connection: StoreConnection, size_bytes: int, pieces: int) -> None:
    stored = value_of(b"a key:\r\n{tag}", size_bytes, pieces)
    connection.put(stored, 0, ENOUGH_S)
    assert connection.sizes([stored.key], ENOUGH_S) == [size_bytes]
    read = room_for(stored.key, size_bytes, pieces + 1)
    connection.request(read)
    assert connection.receive(ENOUGH_S)
    assert content(read) == content(stored)


def test_what_is_absent_or_of_another_length_leaves_memory_alone(connection: StoreConnection) -> None:
    """And what comes behind it is read as before: a reply's length is often, but not always, as long."""
    sizes = [1, 9, 10, 99_999, 100_000, 100_001, 8 * MIB]
    for size in sizes:
        connection.put(value_of(b"%d" % size, size), 0, ENOUGH_S)
    for wanted in sizes:
        rooms = [room_for(b"%d" % size, wanted) for size in sizes] + [room_for(b"absent", wanted)]
        right = [room_for(b"%d" % wanted, wanted) for _ in rooms]
        for room, behind in zip(rooms, right, strict=True):
            connection.request(room)
            connection.request(behind)
        for room, behind in zip(rooms, right, strict=True):
            fits = room.key == behind.key
            assert connection.receive(ENOUGH_S) == fits
            assert fits or untouched(room)
            assert connection.receive(ENOUGH_S)
            assert content(behind) == content(value_of(behind.key, wanted))


def test_what_is_deleted_while_replies_are_queued_is_whole_or_absent(
    store: Store, connection: StoreConnection
) -> None:
    stored = value_of(b"key", 4 * MIB)
    connection.put(stored, 0, ENOUGH_S)
    rooms = [room_for(b"key", 4 * MIB) for _ in range(8)]
    for number, room in enumerate(rooms):
        connection.request(room)
        if number == len(rooms) // 2:
            with closing(store.connect()) as another:
                another.delete([b"key", b"absent"], ENOUGH_S)
    read = [connection.receive(ENOUGH_S) for _ in rooms]
    assert read == sorted(read, reverse=True)
    assert not read[-1]  # requested after the deletion
    for is_read, room in zip(read, rooms, strict=True):
        assert content(room) == content(stored) if is_read else untouched(room)


def test_many_sizes_are_one_answer_in_their_order(connection: StoreConnection) -> None:
    keys = [b"key %d" % number for number in range(2000)]
    for number in range(0, 2000, 7):
        connection.put(value_of(keys[number], number + 1), 0, ENOUGH_S)
    assert connection.sizes(keys, ENOUGH_S) == [0 if number % 7 else number + 1 for number in range(2000)]
    assert connection.sizes([], ENOUGH_S) == []


def test_a_value_expires_when_it_is_told_to(store: Store, connection: StoreConnection) -> None:
    connection.put(value_of(b"key", 10), 3600, ENOUGH_S)
    left_s = store.ask("TTL", "key")
    assert isinstance(left_s, int)
    assert 3000 < left_s <= 3600
    connection.put(value_of(b"key", 10), 0, ENOUGH_S)
    assert store.ask("TTL", "key") == -1


def test_asking_for_its_size_is_a_use(store: Store, connection: StoreConnection) -> None:
    """So what is looked up is what a full store keeps."""
    connection.put(value_of(b"key", 10), 0, ENOUGH_S)
    store.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu")
    try:
        before = store.ask("OBJECT", "FREQ", "key")
        connection.sizes([b"key"] * 1000, ENOUGH_S)
        after = store.ask("OBJECT", "FREQ", "key")
    finally:
        store.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    assert isinstance(before, int)
    assert isinstance(after, int)
    assert after > before


def test_a_server_says_what_it_is(program: str, store: Store, connection: StoreConnection) -> None:
    connection.put(value_of(b"key", MIB), 0, ENOUGH_S)
    facts = connection.facts(ENOUGH_S)
    assert facts.version.lower().startswith(program)
    assert facts.maxmemory_bytes == 300 * MIB
    assert MIB < facts.used_bytes < 20 * MIB
    assert facts.policy == "allkeys-lru"
    assert facts.evicted_keys == 0
    assert store.ask("DBSIZE") == 1


MISUSES: Mapping[str, Callable[[StoreConnection], object]] = {
    "put": lambda connection: connection.put(value_of(b"key", 10), 0, ENOUGH_S),
    "sizes": lambda connection: connection.sizes([b"key"], ENOUGH_S),
    "delete": lambda connection: connection.delete([b"key"], ENOUGH_S),
    "facts": lambda connection: connection.facts(ENOUGH_S),
}


@pytest.mark.parametrize("misuse", MISUSES)
def test_what_is_requested_is_received_before_anything_else(connection: StoreConnection, misuse: str) -> None:
    connection.request(room_for(b"key", 10))
    with pytest.raises(ValueError, match="what is requested has to be received first"):
        MISUSES[misuse](connection)


def test_what_is_received_was_requested(connection: StoreConnection) -> None:
    with pytest.raises(ValueError, match="nothing is requested"):
        connection.receive(ENOUGH_S)
