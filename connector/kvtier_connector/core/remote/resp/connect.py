"""How a connection to a store comes to be: sockets, TLS, credentials, and the database."""

import socket
import ssl
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvtier_connector.core.remote.resp.cluster import ClusterConnection
from kvtier_connector.core.remote.resp.connection import RespConnection
from kvtier_connector.core.remote.resp.shards import shard_map
from kvtier_connector.core.remote.resp.slots import SlotMap, slot_map
from kvtier_connector.core.remote.resp.url import RespUrl
from kvtier_connector.core.remote.resp.wire import PlainWire, TlsWire, Wire, left_s
from kvtier_connector.core.remote.store import StoreConnection
from kvtier_connector.core.remote.urls import Address
from kvtier_connector.errors import (
    RemoteDeniedError,
    RemoteError,
    RemoteMovedError,
    RemoteTimeoutError,
    RemoteTlsError,
)


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach a store. Files are read at each connect, so that what is in them may be replaced."""

    url: RespUrl
    credentials_path: str = ""  # folder with `password` and perhaps `username`; empty for none
    ca_path: str = ""  # certificates that sign the server's; empty for the system's
    timeout_s: float = 5.0  # of connecting to one server, all together but its name's look-up


_AddressInfo = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[Any, ...]]
"""As socket.getaddrinfo has them."""


def connect(access: Access) -> StoreConnection:
    """Connect to a store: one server, the cluster that the first to answer is of, or all that the URL names.

    Raises RemoteError and those below it: none answers, or they do not belong together.
    """
    address, first = _first(access)
    is_cluster = first.info(access.timeout_s).get("cluster_enabled") == "1"
    if not is_cluster and len(access.url.addresses) == 1:
        return first
    with closing(first):
        if not is_cluster:
            slots = shard_map(access.url.addresses)
            return ClusterConnection(slots, _shards(access, slots))
        slots = slot_map(address, first.ask(b"CLUSTER", b"SLOTS", timeout_s=access.timeout_s))
    return ClusterConnection(slots, _primaries(access, slots))


def connect_one(access: Access, address: Address) -> RespConnection:
    """Connect to one server, and have it answer. Raises RemoteError and those below it."""
    peer = str(address)
    deadline_s = time.monotonic() + access.timeout_s
    credentials = _credentials(access.credentials_path)
    try:
        wire = _wire(access, address)
    except TimeoutError as error:
        perhaps = "; does it speak TLS?" if access.url.tls else ""
        raise RemoteTimeoutError(f"{peer}: no connection within {access.timeout_s:.3g} s{perhaps}") from error
    except ssl.SSLError as error:
        raise RemoteTlsError(f"{peer}: TLS: {error.reason or error}") from error
    except OSError as error:
        raise RemoteError(f"{peer}: {error.strerror or error}") from error
    except UnicodeError as error:  # of the IDNA encoding
        raise RemoteError(f"{peer}: is no name that a server can have") from error
    connection = RespConnection(wire, peer, access.timeout_s)
    try:
        if credentials:
            _log_in(connection, credentials, left_s(deadline_s))
        if access.url.database:
            connection.ask(b"SELECT", b"%d" % access.url.database, timeout_s=left_s(deadline_s))
        connection.ask(b"PING", timeout_s=left_s(deadline_s))
    except TimeoutError as error:
        connection.close()
        raise RemoteTimeoutError(f"{peer}: no connection within {access.timeout_s:.3g} s") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _first(access: Access) -> tuple[Address, RespConnection]:
    """Connect to the first server of the URL that answers."""
    *others, last = access.url.addresses
    for address in others:
        with suppress(RemoteError):
            return address, connect_one(access, address)
    return last, connect_one(access, last)


def _shards(access: Access, slots: SlotMap) -> list[RespConnection | None]:
    """Connect to several servers of which each has its part. Raises RemoteError: one cannot have one."""
    shards = _primaries(access, slots)
    try:
        for shard in filter(None, shards):
            _check_shard(shard, access.timeout_s)
    except BaseException:
        for shard in filter(None, shards):
            shard.close()
        raise
    return shards


def _check_shard(shard: RespConnection, timeout_s: float) -> None:
    info = shard.info(timeout_s)
    if info.get("cluster_enabled") == "1":
        why = "is of a cluster and others are not; name a cluster's alone"
    elif info.get("role") == "slave":
        why = "is a replica; name servers alone that take writes"
    else:
        return
    raise RemoteError(f"kv_connector_extra_config.remote_url: {shard.peer} {why}")


def _primaries(access: Access, slots: SlotMap) -> list[RespConnection | None]:
    """Connect to all servers of a map; one that cannot be reached is done without, unless it is the last."""
    primaries = list[RespConnection | None]()
    failure: RemoteError | None = None
    for address in slots.primaries:
        try:
            primaries.append(connect_one(access, address))
        except RemoteError as error:
            primaries.append(None)
            failure = error
    if not any(primaries):
        raise failure or RemoteMovedError("no server of the cluster has a slot")
    return primaries


def _wire(access: Access, address: Address) -> Wire:
    infos = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    deadline_s = time.monotonic() + access.timeout_s
    connected = _first_to_connect(infos, deadline_s)
    try:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not access.url.tls:
            return PlainWire(connected)
        context = _tls(access.ca_path)
        connected.settimeout(left_s(deadline_s))
        return TlsWire(context.wrap_socket(connected, server_hostname=address.host))
    except BaseException:
        connected.close()
        raise


def _first_to_connect(infos: Sequence[_AddressInfo], deadline_s: float) -> socket.socket:
    """Connect to the first of a name's addresses that answers; each has its part of the time that is left."""
    for place, (family, kind, protocol, _, address) in enumerate(infos):
        attempt = socket.socket(family, kind, protocol)
        try:
            attempt.settimeout(left_s(deadline_s) / (len(infos) - place))
            attempt.connect(address)
        except BaseException as error:
            attempt.close()
            if not isinstance(error, OSError) or place == len(infos) - 1:
                raise
        else:
            return attempt
    raise OSError("its name has no address")


def _tls(ca_path: str) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ca_path or None)
    except (OSError, ssl.SSLError) as error:
        raise RemoteTlsError(
            f"kv_connector_extra_config.remote_ca_path: {ca_path}: {error.strerror or error}"
        ) from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _credentials(folder: str) -> tuple[bytes, ...]:
    """Return what AUTH is given."""
    if not folder:
        return ()
    try:
        password = (Path(folder) / "password").read_bytes().rstrip(b"\r\n")
        name = Path(folder) / "username"
        username = name.read_bytes().rstrip(b"\r\n") if name.exists() else b""
    except OSError as error:
        raise RemoteDeniedError(
            f"kv_connector_extra_config.remote_credentials_path: {error.filename}: {error.strerror}"
        ) from error
    return (username, password) if username else (password,)


def _log_in(connection: RespConnection, credentials: tuple[bytes, ...], timeout_s: float) -> None:
    try:
        connection.ask(b"AUTH", *credentials, timeout_s=timeout_s)
    except RemoteTimeoutError:
        raise
    except RemoteError as error:  # a server without passwords says ERR
        raise RemoteDeniedError(str(error)) from error
