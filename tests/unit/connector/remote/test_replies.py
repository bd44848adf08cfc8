"""Whatever bytes a server answers: an answer, or one error of ours."""

import socket
from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.cluster.harness.programs.ports import free_ports
from tests.shared.stores import HOST, Store
from tests.unit.connector.remote.cases import content, room_for, untouched, value_of

from kvtier_connector.core.remote.resp.connect import Access, connect, connect_one
from kvtier_connector.core.remote.resp.connection import RespConnection
from kvtier_connector.core.remote.resp.slots import SlotMap, slot_map
from kvtier_connector.core.remote.resp.url import parse_url
from kvtier_connector.core.remote.urls import Address
from kvtier_connector.errors import RemoteError


class Answers:
    """A wire on which these bytes come, in pieces of this size, and then its end."""

    def __init__(self, answer: bytes, most_bytes: int) -> None:
        self._answer = answer
        self._most_bytes = most_bytes
        self.closed = False

    def read(self, most_bytes: int, deadline_s: float) -> bytes:  # noqa: ARG002 - a Wire's
        size = min(most_bytes, self._most_bytes)
        read, self._answer = self._answer[:size], self._answer[size:]
        if not read:
            raise ConnectionResetError
        return read

    def fill(self, memory: Sequence[memoryview], deadline_s: float) -> None:
        for piece in memory:
            for place in range(len(piece)):
                piece[place : place + 1] = self.read(1, deadline_s)

    def write(self, memory: Sequence[memoryview], deadline_s: float) -> None:
        pass

    def close(self) -> None:
        self.closed = True


DEEDS: Mapping[str, Callable[[RespConnection], object]] = {
    "sizes": lambda connection: connection.sizes([b"a", b"b"], 1.0),
    "put": lambda connection: connection.put(value_of(b"a", 10), 0, 1.0),
    "delete": lambda connection: connection.delete([b"a"], 1.0),
    "facts": lambda connection: connection.facts(1.0),
    "slots": lambda connection: slot_map(
        Address("a", 1), connection.ask(b"CLUSTER", b"SLOTS", timeout_s=1.0)
    ),
}
PARTS = st.one_of(
    st.sampled_from(
        [b"\r\n", b"$-1\r\n", b"+OK\r\n", b":3\r\n", b"$10\r\n", b"*1\r\n", b"*2\r\n", b"-OOM no\r\n"]
    ),
    st.builds(
        lambda kind, size: b"%b%d\r\n" % (kind, size), st.sampled_from([b"$", b"*", b":"]), st.integers()
    ),
    st.binary(max_size=12),
)
LARGE = b"9" * 5000  # no number for int()
INFO = b"redis_version:7\r\nmaxmemory:%b\r\n" % LARGE
BYTES = st.lists(PARTS, max_size=8).map(b"".join)


@pytest.mark.parametrize("deed", DEEDS)
@given(answer=BYTES, most_bytes=st.integers(1, 100))
@example(answer=b":%b\r\n" % LARGE, most_bytes=10_000)
@example(answer=b"$%b\r\n" % LARGE, most_bytes=10_000)
@example(answer=b"$%d\r\n%b\r\n" % (len(INFO), INFO), most_bytes=100)
@example(answer=b"*1\r\n*3\r\n:-9\r\n:1\r\n*2\r\n$1\r\na\r\n:1\r\n", most_bytes=100)
def test_any_bytes_are_an_answer_or_an_error(deed: str, answer: bytes, most_bytes: int) -> None:
    wire = Answers(answer, most_bytes)
    connection = RespConnection(wire, "peer:1", 1.0)
    try:
        DEEDS[deed](connection)
    except RemoteError:
        assert wire.closed or deed == "slots"  # which were received well, and say nothing that makes sense


@given(answer=BYTES, most_bytes=st.integers(1, 100))
def test_memory_is_filled_by_its_value_alone(answer: bytes, most_bytes: int) -> None:
    wire = Answers(answer, most_bytes)
    connection = RespConnection(wire, "peer:1", 1.0)
    room = room_for(b"key", 10)
    connection.request(room)
    try:
        filled = connection.receive(1.0)
    except RemoteError:
        assert wire.closed
        assert untouched(room) or answer.startswith(b"$10\r\n")
    else:
        whole = answer.startswith(b"$10\r\n") and answer[15:17] == b"\r\n"
        assert filled == whole
        assert content(room) == answer[5:15] if whole else untouched(room)


def test_a_map_has_every_range_and_a_name_for_who_does_not_know_its_own() -> None:
    asked = Address("entry", 7000)
    reply = [
        [0, 1, [b"", 7000, b"id"]],
        [3, 3, [b"other", 7001, b"id", []], [b"replica", 7002]],
        [4, 4, [b"?", 7000]],
    ]
    slots = slot_map(asked, reply)  # type: ignore[arg-type] # lists of lists
    assert slots == SlotMap((asked, Address("other", 7001)), (0, 0, -1, 1, 0, *[-1] * (16384 - 5)))


@pytest.mark.parametrize("host", ["a" * 70, "no.such.host.invalid"])
def test_a_name_that_no_server_has_is_an_error_of_ours(host: str) -> None:
    with pytest.raises(RemoteError, match=f"^{host}:1: "):
        connect(Access(parse_url(f"redis://{host}:1")))


@pytest.mark.parametrize("host", [b"a\n2026-01-01 ERROR", b"\x1b[2J", b"a" * 254])
def test_a_map_with_what_is_no_host_is_refused(host: bytes) -> None:
    with pytest.raises(RemoteError, match="CLUSTER SLOTS"):
        slot_map(Address("127.0.0.1", 1), [[0, 1, [host, 6379]]])


def test_a_name_s_next_address_is_tried(module_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    [real] = socket.getaddrinfo(HOST, module_store.address.port, type=socket.SOCK_STREAM)
    [closed] = free_ports(1)
    refused = (*real[:4], (HOST, closed))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [refused, real])
    connect_one(module_store.access, module_store.address).close()
