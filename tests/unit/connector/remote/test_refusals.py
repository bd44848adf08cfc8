"""What a server refuses: no room, no rights, no TLS."""

from collections.abc import Generator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cluster.harness.control_plane.certificates import Authority
from tests.shared.stores import ENOUGH_S, HOST, NEEDS_REDIS, Store, running
from tests.unit.connector.remote.cases import MIB, await_answer, content, room_for, value_of

from kvtier_connector.core.remote.resp.connect import Access, connect_one
from kvtier_connector.core.remote.resp.connection import RespConnection
from kvtier_connector.core.remote.resp.url import RespUrl
from kvtier_connector.core.remote.store import StoreConnection
from kvtier_connector.errors import RemoteDeniedError, RemoteError, RemoteFullError, RemoteTimeoutError

SHARE = "kvtier:team/model:"


def test_a_full_server_that_evicts_nothing(own_store: Store) -> None:
    own_store.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
    own_store.ask("CONFIG", "SET", "maxmemory", "8mb")
    with closing(own_store.connect()) as connection:
        with pytest.raises(RemoteFullError, match=f"^{own_store.address}: OOM "):
            fill(connection)
        with pytest.raises(RemoteError, match="closed"):
            connection.sizes([b"0"], ENOUGH_S)
    with closing(own_store.connect()) as connection:  # what is there is served
        read = room_for(b"0", 2 * MIB)
        connection.request(read)
        assert connection.receive(ENOUGH_S)
        assert content(read) == content(value_of(b"0", 2 * MIB))


def fill(connection: StoreConnection) -> None:
    for number in range(8):
        connection.put(value_of(b"%d" % number, 2 * MIB), 0, ENOUGH_S)


@pytest.fixture
def guarded(own_store: Store, tmp_path: Path) -> tuple[Store, Path]:
    """A server with a user for one share alone, and the folder of its name and password."""
    own_store.ask(
        *("ACL", "SETUSER", "engines", "on", ">first", f"~{SHARE}*"),
        *("-@all", "+get", "+set", "+strlen", "+del", "+ping", "+info"),
    )
    folder = tmp_path / "credentials"
    folder.mkdir()
    (folder / "username").write_text("engines\n")
    (folder / "password").write_text("first\n")
    return own_store, folder


def test_a_user_of_one_share_has_that_share_alone(guarded: tuple[Store, Path]) -> None:
    store, folder = guarded
    with closing(store.connect(credentials_path=str(folder))) as connection:
        connection.put(value_of(SHARE.encode() + b"key", 1000), 60, ENOUGH_S)
        assert connection.sizes([SHARE.encode() + b"key"], ENOUGH_S) == [1000]
        connection.delete([SHARE.encode() + b"key"], ENOUGH_S)
        assert connection.facts(ENOUGH_S).maxmemory_bytes
    for key in (b"kvtier:another:key", b"kvtier:team/model"):
        connection = store.connect(credentials_path=str(folder))
        with pytest.raises(RemoteDeniedError, match="NOPERM"):
            connection.sizes([key], ENOUGH_S)
        connection = store.connect(credentials_path=str(folder))
        connection.request(room_for(key, 10))
        with pytest.raises(RemoteDeniedError, match="NOPERM"):
            connection.receive(ENOUGH_S)
        connection = store.connect(credentials_path=str(folder))
        with pytest.raises(RemoteDeniedError, match="NOPERM"):
            connection.put(value_of(key, MIB), 0, ENOUGH_S)


def test_a_password_that_was_turned_is_read_at_the_next_connect(guarded: tuple[Store, Path]) -> None:
    store, folder = guarded
    with closing(store.connect(credentials_path=str(folder))) as before:
        store.ask("ACL", "SETUSER", "engines", "resetpass", ">second")
        with pytest.raises(RemoteDeniedError, match="WRONGPASS") as refusal:
            store.connect(credentials_path=str(folder))
        assert "first" not in str(refusal.value)
        (folder / "password").write_text("second\r\n")
        with closing(store.connect(credentials_path=str(folder))) as after:
            assert after.sizes([SHARE.encode()], ENOUGH_S) == [0]
        assert before.sizes([SHARE.encode()], ENOUGH_S) == [0]  # who is in stays in


def test_a_server_with_a_password_wants_it(own_store: Store, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("secret")
    with pytest.raises(RemoteDeniedError, match="AUTH"):  # it has none yet
        own_store.connect(credentials_path=str(tmp_path))
    own_store.ask("CONFIG", "SET", "requirepass", "secret")
    with pytest.raises(RemoteDeniedError, match="NOAUTH"):
        own_store.connect()
    own_store.connect(credentials_path=str(tmp_path)).close()
    with pytest.raises(
        RemoteDeniedError, match=r"remote_credentials_path: .*/nowhere/password: No such file"
    ):
        own_store.connect(credentials_path=str(tmp_path / "nowhere"))


@pytest.fixture(scope="module", params=[pytest.param("redis", marks=NEEDS_REDIS)])
def encrypted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Generator[tuple[Store, Authority]]:
    """A Redis that speaks TLS alone, and its authority. PyPI's Valkey is built without TLS."""
    folder = tmp_path_factory.mktemp("tls")
    authority = Authority(folder)
    pair = authority.sign("store", addresses=[HOST])
    files = (
        "--tls-cert-file",
        pair.certificate,
        "--tls-key-file",
        pair.key,
        "--tls-ca-cert-file",
        authority.file,
    )
    url = RespUrl((), tls=True, database=0)
    access = Access(url, ca_path=str(authority.file), timeout_s=ENOUGH_S)
    with running(request.param, folder, *map(str, files), "--tls-auth-clients", "no", access=access) as store:
        yield store, authority


def test_values_travel_encrypted(encrypted: tuple[Store, Authority]) -> None:
    store, _ = encrypted
    with closing(store.connect()) as connection:
        for size_bytes in (1, 16 << 10, 4 * MIB):
            connection.put(value_of(b"key", size_bytes, 5), 0, ENOUGH_S)
            absent, read = room_for(b"absent", size_bytes), room_for(b"key", size_bytes, 2)
            connection.request(absent)
            connection.request(read)
            assert [connection.receive(ENOUGH_S) for _ in range(2)] == [False, True]
            assert content(read) == content(value_of(b"key", size_bytes, 5))
        assert isinstance(connection, RespConnection)
        connection.ask_sizes([b"key"], ENOUGH_S)
        await_answer(connection)
        assert connection.answered_sizes(1, 0.0) == [4 * MIB], "it came in time, however late it is read"
        with store.stopped():
            connection.request(room_for(b"absent", 10))
            with pytest.raises(RemoteTimeoutError):
                connection.receive(0.0)


def test_who_signs_and_for_whom_is_checked(encrypted: tuple[Store, Authority], tmp_path: Path) -> None:
    store, _ = encrypted
    with pytest.raises(RemoteError, match="TLS: CERTIFICATE_VERIFY_FAILED"):
        store.connect(ca_path=str(Authority(tmp_path).file))
    with pytest.raises(RemoteError, match="TLS: CERTIFICATE_VERIFY_FAILED"):
        store.connect(ca_path="")  # the system's
    with pytest.raises(RemoteError, match="TLS: CERTIFICATE_VERIFY_FAILED"):
        connect_one(store.access, type(store.address)("localhost", store.address.port))
    with pytest.raises(RemoteError, match=r"remote_ca_path: .*/none: No such file"):
        store.connect(ca_path=str(tmp_path / "none"))


def test_tls_against_a_server_without_it_and_the_other_way(
    encrypted: tuple[Store, Authority], store: Store
) -> None:
    with_tls, _ = encrypted
    plain_url = RespUrl((with_tls.address,), tls=False, database=0)
    with pytest.raises(RemoteError, match=f"^{with_tls.address}: "):
        connect_one(Access(plain_url, timeout_s=ENOUGH_S), with_tls.address)
    with pytest.raises(RemoteTimeoutError, match=r"does it speak TLS\?"):  # it waits for the end of a line
        connect_one(replace(with_tls.access, timeout_s=0.3), store.address)
