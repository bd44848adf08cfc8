"""What engines are given to reach the store that they share: secrets as files, and connections."""

from math import ceil
from typing import Final

from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.tiers.remote import RemoteTierSpec
from kvtier_operator.planning.base.container_parts import Mount

CREDENTIALS_FOLDER: Final = "/etc/kvtier/remote/credentials"
CA_FOLDER: Final = "/etc/kvtier/remote/ca"
CONNECTION_BYTES_PER_S: Final = 1.5e9
"""What one TCP connection carries; measured with Redis and Valkey on loopback, on busy cores."""
_LEAST_CONNECTIONS, _MOST_CONNECTIONS, _USUAL_CONNECTIONS = 2, 16, 4


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
    return (*mounts, *ca_mounts(remote))


def ca_mounts(remote: RemoteTierSpec | None) -> tuple[Mount, ...]:
    """The authority's certificate as a folder; none where the image's count."""
    if remote is None or remote.tls is None:
        return ()
    ca = remote.tls.ca_secret_ref
    items = [{"key": ca.key, "path": ca.key}]
    source = {"secretName": ca.name, "items": items, "optional": False}
    return (Mount("remote-ca", CA_FOLDER, {"secret": source}, read_only=True),)


def credentials_path(remote: RemoteTierSpec) -> str:
    """Folder with `password` and, where there is one, `username`; empty where engines do not sign in."""
    return CREDENTIALS_FOLDER if remote.credentials else ""


def ca_path(remote: RemoteTierSpec) -> str:
    """File with the authority's certificate; empty for those of the image."""
    return f"{CA_FOLDER}/{remote.tls.ca_secret_ref.key}" if remote.tls else ""


def connections(spec: Spec, remote: RemoteTierSpec) -> int:
    """Of each engine: those given, or as many as carry the pod's bandwidth between them."""
    if remote.connections:
        return remote.connections
    if remote.bandwidth is None:
        return _USUAL_CONNECTIONS
    wanted = ceil(remote.bandwidth.bytes / spec.engine.data_parallel_size / CONNECTION_BYTES_PER_S)
    return min(max(wanted, _LEAST_CONNECTIONS), _MOST_CONNECTIONS)
