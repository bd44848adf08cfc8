"""What engines are given to reach the store that they share: secrets as files, and connections."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Final

from kvtier_connector.config import (
    MOONCAKE_CLIENT_BYTES,
    REMOTE_CONNECTIONS,
    REMOTE_DEPTH,
    REMOTE_VALUE_BYTES,
)
from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.tiers.remote import RemoteEngine, RemoteTierSpec
from kvtier_operator.planning.base.container_parts import Mount
from kvtier_operator.planning.units import GIB

CREDENTIALS_FOLDER: Final = "/etc/kvtier/remote/credentials"
CA_FOLDER: Final = "/etc/kvtier/remote/ca"
MAC_FOLDER: Final = "/etc/kvtier/remote/mac"


@dataclass(frozen=True, slots=True)
class StoreCosts:
    """What a store of one engine asks for, by measurements on loopback, on two busy cores."""

    connection_bytes_per_s: float  # what one connection carries
    client_core_s_per_gib: float
    server_core_s_per_gib: float
    # of a block's bytes, what counts for it in the store's capacity
    stored_percent: int
    client_bytes: int = 0  # memory of the engine's pod that each connection takes
    mac_core_s_per_gib: float = 0.0  # beside the client's, on the thread of each connection


_COSTS: Final[Mapping[RemoteEngine, StoreCosts]] = {
    # Redis 7.0 and Valkey 9.1: values cut so that they fit its allocator's size classes, and their keys
    RemoteEngine.REDIS: StoreCosts(1.5e9, 0.3, 0.25, stored_percent=102),
    # Mooncake 0.3.13 over TCP, and a master that evicts at nine tenths (-eviction_high_watermark_ratio)
    RemoteEngine.MOONCAKE: StoreCosts(
        0.8e9, 1.4, 0.5, stored_percent=112, client_bytes=MOONCAKE_CLIENT_BYTES
    ),
}
_MAC_CORE_S_PER_GIB: Final = 0.6  # HMAC-SHA256 on the same machine
_USUAL_CONNECTIONS: Final = 4


def secret_mounts(remote: RemoteTierSpec | None) -> tuple[Mount, ...]:
    """Secrets of the store as folders, which change with the Secret while the engine runs.

    A pod waits for a Secret that is not there: with `optional` it starts and is refused by the store. So it
    does with the Secret that kvtier makes: an engine serves without a store of its own until that is there.
    """
    if remote is None:
        return ()
    mounts = []
    if remote.credentials:
        # all keys: username need not be there, and a pod waits for each key that is named
        source = {"secretName": remote.credentials.secret_ref.name, "optional": remote.managed is not None}
        mounts.append(Mount("remote-credentials", CREDENTIALS_FOLDER, {"secret": source}, read_only=True))
    return (*mounts, *ca_mounts(remote), *_mac_mounts(remote))


def secret_notes(remote: RemoteTierSpec | None) -> tuple[str, ...]:
    """What somebody has to make before pods start; a Secret of kvtier's own is none of it."""
    if remote is None:
        return ()
    wanted = []
    if remote.credentials and remote.managed is None:
        keys = "password, and username where it is not the default one"
        wanted.append(f"{remote.credentials.secret_ref.name} ({keys})")
    if remote.tls and remote.managed is None:
        wanted.append(f"{remote.tls.ca_secret_ref.name} ({remote.tls.ca_secret_ref.key})")
    if remote.mac_key:
        wanted.append(f"{remote.mac_key.secret_ref.name} ({remote.mac_key.secret_ref.key})")
    if not wanted:
        return ()
    return (f"pods wait in ContainerCreating for these Secrets of the remote tier: {', '.join(wanted)}",)


def _mac_mounts(remote: RemoteTierSpec) -> tuple[Mount, ...]:
    if remote.mac_key is None:
        return ()
    ref = remote.mac_key.secret_ref
    return (Mount("remote-mac", MAC_FOLDER, _secret_file(ref.name, ref.key), read_only=True),)


def ca_mounts(remote: RemoteTierSpec | None) -> tuple[Mount, ...]:
    """The authority's certificate as a folder; none where the image's count."""
    if remote is None or remote.tls is None:
        return ()
    ref = remote.tls.ca_secret_ref
    source = _secret_file(ref.name, ref.key, optional=remote.managed is not None)
    return (Mount("remote-ca", CA_FOLDER, source, read_only=True),)


def _secret_file(name: str, key: str, *, optional: bool = False) -> Mapping[str, Any]:
    """A volume of one key of a Secret, which a pod waits for unless it is optional."""
    return {"secret": {"secretName": name, "items": [{"key": key, "path": key}], "optional": optional}}


def credentials_path(remote: RemoteTierSpec) -> str:
    """Folder with `password` and, where there is one, `username`; empty where engines do not sign in."""
    return CREDENTIALS_FOLDER if remote.credentials else ""


def ca_path(remote: RemoteTierSpec) -> str:
    """File with the authority's certificate; empty for those of the image."""
    return f"{CA_FOLDER}/{remote.tls.ca_secret_ref.key}" if remote.tls else ""


def costs_of(remote: RemoteTierSpec) -> StoreCosts:
    """Of the engine of a resource's store, with what its values' MAC takes."""
    costs = _COSTS[remote.engine]
    if remote.mac_key is None:
        return costs
    byte_s = 1 / costs.connection_bytes_per_s + _MAC_CORE_S_PER_GIB / GIB
    return replace(costs, connection_bytes_per_s=1 / byte_s, mac_core_s_per_gib=_MAC_CORE_S_PER_GIB)


def mac_key_path(remote: RemoteTierSpec) -> str:
    """File with the key of values; empty where they have a checksum alone."""
    return f"{MAC_FOLDER}/{remote.mac_key.secret_ref.key}" if remote.mac_key else ""


def server_buffer_bytes(all_connections: int) -> int:
    """What a Redis server holds at most for so many connections, beside its values.

    It copies each value that is asked for into the connection's buffer.
    """
    return all_connections * REMOTE_DEPTH * REMOTE_VALUE_BYTES


def connections(spec: Spec, remote: RemoteTierSpec) -> int:
    """Of each engine: those given, or as many as carry the pod's bandwidth between them."""
    if remote.connections:
        return remote.connections
    if remote.bandwidth is None:
        return _USUAL_CONNECTIONS
    engine_bytes_per_s = remote.bandwidth.bytes / spec.engine.data_parallel_size
    wanted = ceil(engine_bytes_per_s / costs_of(remote).connection_bytes_per_s)
    return min(max(wanted, REMOTE_CONNECTIONS[0]), REMOTE_CONNECTIONS[-1])
