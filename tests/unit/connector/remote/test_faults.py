"""Servers and networks that fail while something is asked of them."""

from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import replace

import pytest
from tests.shared.proxy import Proxy
from tests.shared.stores import ENOUGH_S, HOST, Store
from tests.unit.connector.remote.cases import (
    MIB,
    UNTOUCHED,
    await_answer,
    content,
    room_for,
    untouched,
    value_of,
)

from kvtier_connector.core.remote.resp.connect import connect_one
from kvtier_connector.core.remote.resp.connection import RespConnection
from kvtier_connector.core.remote.resp.url import RespUrl
from kvtier_connector.core.remote.store import StoreConnection
from kvtier_connector.core.remote.urls import Address
from kvtier_connector.errors import RemoteError, RemoteTimeoutError

LARGE = 32 * MIB
"""More than sockets buffer, so that a server is in the middle of it until the client reads."""
SOON_S = 0.3


@pytest.fixture
def large(own_store: Store) -> Store:
    """A server with a large value."""
    with closing(own_store.connect()) as connection:
        connection.put(value_of(b"key", LARGE), 0, ENOUGH_S)
    return own_store


def begun(store: Store) -> RespConnection:
    """A connection on which the large value has begun to come."""
    connection = connect_one(store.access, store.address)
    connection.request(room_for(b"key", LARGE))
    await_answer(connection)
    return connection


def test_a_server_that_is_killed_in_the_middle_of_a_value(large: Store) -> None:
    connection = begun(large)
    large.process.kill()
    with pytest.raises(RemoteError, match=f"^{large.address}: (the server closed|Connection reset)"):
        connection.receive(ENOUGH_S)
    with pytest.raises(RemoteError, match="Connection refused"):
        large.connect()


def test_a_server_that_is_stopped_writes_to_no_memory_when_it_goes_on(large: Store) -> None:
    connection = begun(large)
    room = connection._requested[0]
    with large.stopped():
        with pytest.raises(RemoteTimeoutError, match=r"no answer within 0.3 s"):
            connection.receive(SOON_S)
        left = content(room)
    assert large.ask("PING") == b"PONG"  # it goes on
    large.process.wait_until(lambda: clients(large) == 1)  # and has given this connection up
    assert content(room) == left
    assert UNTOUCHED in set(left[-MIB:])


@pytest.mark.parametrize("deed", ["sizes", "put", "delete", "facts", "receive"])
def test_every_call_ends_by_its_time_out(own_store: Store, deed: str) -> None:
    connection = own_store.connect()
    with own_store.stopped():
        if deed == "receive":
            connection.request(room_for(b"key", 10))
        with pytest.raises(RemoteTimeoutError):
            DEEDS[deed](connection)
    with pytest.raises(RemoteError, match="closed"):
        connection.sizes([b"key"], ENOUGH_S)


DEEDS: dict[str, Callable[[StoreConnection], object]] = {
    "sizes": lambda connection: connection.sizes([b"key"], SOON_S),
    "put": lambda connection: connection.put(value_of(b"key", 64 * MIB), 0, SOON_S),
    "delete": lambda connection: connection.delete([b"key"], SOON_S),
    "facts": lambda connection: connection.facts(SOON_S),
    "receive": lambda connection: connection.receive(SOON_S),
}


def clients(store: Store) -> int:
    said = store.ask("CLIENT", "LIST")
    assert isinstance(said, bytes)
    return said.count(b"\n")


def test_a_server_that_does_not_take_a_connection_up(own_store: Store) -> None:
    access = replace(own_store.access, timeout_s=SOON_S)
    with own_store.stopped(), pytest.raises(RemoteTimeoutError, match=f"^{own_store.address}: no "):
        connect_one(access, own_store.address)


@pytest.fixture
def proxy(store: Store) -> Generator[Proxy]:
    with Proxy(HOST, store.address.port) as proxy:
        yield proxy


def through(proxy: Proxy, store: Store) -> RespConnection:
    address = Address(HOST, proxy.port)
    return connect_one(replace(store.access, url=RespUrl((address,), tls=False, database=0)), address)


def test_an_answer_that_comes_late_is_not_waited_for(store: Store, proxy: Proxy) -> None:
    def hold(answer: bytes) -> Iterable[bytes]:
        proxy.hold()
        yield answer

    store.ask("SET", "key", "0123456789")
    connection, room = through(proxy, store), room_for(b"key", 10)
    proxy.fault = hold
    connection.request(room)
    with pytest.raises(RemoteTimeoutError):
        connection.receive(SOON_S)
    assert untouched(room)


def test_an_answer_in_time_counts_however_late_it_is_read(store: Store) -> None:
    """A thread that waits may not run for a while: the server is not to blame."""
    with closing(connect_one(store.access, store.address)) as connection:
        connection.put(value_of(b"key", 10), 0, ENOUGH_S)
        connection.ask_sizes([b"key"], ENOUGH_S)
        await_answer(connection)
        assert connection.answered_sizes(1, 0.0) == [10]
        connection.request(room_for(b"key", 10))
        await_answer(connection)
        assert connection.receive(0.0)


@pytest.mark.parametrize("size_bytes", [10, 1000])
def test_an_answer_that_drips_prolongs_nothing(store: Store, proxy: Proxy, size_bytes: int) -> None:
    """Neither before the value nor within it: the bytes come sooner one by one than the time is over."""

    def drip(answer: bytes) -> Iterable[bytes]:
        for place in range(len(answer)):
            proxy.wait(SOON_S / 4)
            yield answer[place : place + 1]

    store.ask("SET", "key", "v" * size_bytes)
    connection = through(proxy, store)
    proxy.fault = drip
    connection.request(room_for(b"key", size_bytes))
    with pytest.raises(RemoteTimeoutError):
        connection.receive(SOON_S)


def test_an_answer_in_small_pieces_is_an_answer(store: Store, proxy: Proxy) -> None:
    stored = value_of(b"key", 100_000)
    with closing(store.connect()) as connection:
        connection.put(stored, 0, ENOUGH_S)
    proxy.fault = lambda answer: (answer[place : place + 7] for place in range(0, len(answer), 7))
    with closing(through(proxy, store)) as connection:
        assert connection.sizes([b"key", b"absent", b"key"], ENOUGH_S) == [100_000, 0, 100_000]
        for key in (b"absent", b"key", b"key"):
            connection.request(room_for(key, 100_000))
        read = list(connection._requested)
        assert [connection.receive(ENOUGH_S) for _ in read] == [False, True, True]
        assert content(read[2]) == content(stored)
        assert connection.facts(ENOUGH_S).maxmemory_bytes


@pytest.mark.parametrize("place", [0, 3, 9, 10, 50_000, 100_009, 100_010])
def test_an_answer_that_is_cut_off_is_an_error(store: Store, proxy: Proxy, place: int) -> None:
    with closing(store.connect()) as connection:
        connection.put(value_of(b"key", 100_000), 0, ENOUGH_S)
    connection = through(proxy, store)
    proxy.fault = cut_after(place)
    connection.request(room_for(b"key", 100_000))
    with pytest.raises(RemoteError, match=r"closed the connection|Connection reset"):
        connection.receive(ENOUGH_S)


def cut_after(left: int) -> Callable[[bytes], Iterable[bytes]]:
    def fault(answer: bytes) -> Iterable[bytes]:
        nonlocal left
        yield answer[:left]
        left -= len(answer)
        if left < 0:
            raise OSError("cut")

    return fault


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00" * 100_000,
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"$-2\r\n",
        b"$1e9\r\n",
        b"+OK\r\n",
        b":7\r\n",
        b"\r\n",
    ],
)
@pytest.mark.parametrize("deed", ["sizes", "put", "receive", "facts"])
def test_what_is_not_an_answer_is_an_error(store: Store, proxy: Proxy, deed: str, garbage: bytes) -> None:
    right = {"sizes": b":7\r\n", "put": b"+OK\r\n"}
    if right.get(deed) == garbage:
        return
    connection = through(proxy, store)
    proxy.fault = lambda _: [garbage]
    room = room_for(b"key", 100_000)
    if deed == "receive":
        connection.request(room)
    deeds: dict[str, Callable[[], object]] = {
        "sizes": lambda: connection.sizes([b"key"], ENOUGH_S),
        "put": lambda: connection.put(value_of(b"key", 10), 0, ENOUGH_S),
        "receive": lambda: connection.receive(ENOUGH_S),
        "facts": lambda: connection.facts(ENOUGH_S),
    }
    with pytest.raises(RemoteError, match="not the Redis protocol"):
        deeds[deed]()
    assert untouched(room)


def test_a_value_with_no_end_is_not_taken_for_one(store: Store, proxy: Proxy) -> None:
    store.ask("SET", "key", "0123456789")
    connection = through(proxy, store)
    proxy.fault = lambda answer: [answer[:-2], b"!!"]
    connection.request(room_for(b"key", 10))
    with pytest.raises(RemoteError, match="not the Redis protocol"):
        connection.receive(ENOUGH_S)
