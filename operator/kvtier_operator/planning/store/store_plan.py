"""The store of a resource's own: what its server may hold, and what it needs beside that."""

from dataclasses import dataclass
from typing import Final

from kvtier_common.redis_protocol import PORT
from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.api.spec.tiers.remote import (
    CertificateSecretRef,
    CredentialsSecret,
    RemoteCredentials,
    RemoteTierSpec,
    RemoteTls,
)
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.base.names import Names
from kvtier_operator.planning.base.remote_store import connections, server_buffer_bytes
from kvtier_operator.planning.images import ImageSource
from kvtier_operator.planning.units import GIB, MIB, ceil_div, many, round_down, round_up, size

_LEAST_CONNECTIONS: Final = 32
_BASE_BYTES: Final = 64 * MIB
"""Code, threads, probes and tables of an empty server."""
_SHARE, _WHOLE = 9, 10
"""Of what is left, the share that values may take: jemalloc keeps freed pages for 10 s and rounds up."""
_LARGE_BYTES: Final = 8 * GIB
"""From here on a store has cores for threads that read and write its sockets."""


@dataclass(frozen=True, slots=True)
class StoreSize:
    """What the pod of one of a store's servers gets, and what that holds in it."""

    memory_bytes: int  # of the pod, requested and its limit
    held_bytes: int  # Valkey's `maxmemory`
    buffer_bytes: int  # of the pod, for what connections have under way
    cores: int  # that the pod asks for
    io_threads: int  # Valkey's own number, its main thread among them


@dataclass(frozen=True, slots=True)
class StorePlan:
    """The store of one resource."""

    size: StoreSize  # of each server
    shards: int  # servers
    image: str
    secret: str  # name of the Secret with its password
    makes_secret: bool  # whether that Secret is kvtier's to make, rather than one that the resource names
    tls_secret: str  # name of the Secret with the servers' certificate; empty without TLS


def plan_store(resource: KVCacheTier, images: ImageSource) -> StorePlan | None:
    """The store that is made for a resource; None where it has none, or one of somebody else's.

    Raises:
        InvalidInputError: It asks for more than its memory holds.
    """
    remote = resource.spec.tiers.remote
    if remote is None or remote.managed is None:
        return None
    spec = resource.spec
    engines = max(spec.most_pods, 1) * spec.engine.data_parallel_size
    all_connections = _in_steps(engines * connections(spec, remote))
    managed, named = remote.managed, remote.credentials
    part_bytes = ceil_div(remote.capacity.bytes, managed.shards)
    # each engine keeps its connections to each of the servers
    memory_bytes = managed.memory.bytes if managed.memory else memory_for(part_bytes, all_connections)
    planned = store_size(memory_bytes, all_connections)
    if planned.held_bytes < part_bytes:
        raise _too_little(planned, part_bytes, managed.shards, all_connections)
    return StorePlan(
        size=planned,
        shards=managed.shards,
        image=images.valkey(),
        secret=named.secret_ref.name if named else Names.of_resource(resource).store,
        makes_secret=named is None,
        tls_secret=managed.tls.secret_name if managed.tls else "",
    )


def with_store(resource: KVCacheTier, store: StorePlan | None) -> KVCacheTier:
    """The resource as if it had named the store that is made for it: its engines use it as any other."""
    remote = resource.spec.tiers.remote
    if store is None or remote is None:
        return resource
    names = Names.of_resource(resource)
    hosts = ",".join(f"{names.store_host(number)}:{PORT}" for number in range(store.shards))
    credentials = RemoteCredentials(secret_ref=CredentialsSecret(name=store.secret))
    update = {
        "url": f"{remote.scheme}://{hosts}",
        "credentials": credentials,
        "tls": _authority(remote, store),
    }
    return with_remote(resource, remote.model_copy(update=update))


def _authority(remote: RemoteTierSpec, store: StorePlan) -> RemoteTls | None:
    """Whom engines believe: the one beside the certificate, unless the resource names another."""
    if remote.tls or not store.tls_secret:
        return remote.tls
    # the key is named, as engines have to have nothing else of that Secret
    return RemoteTls(ca_secret_ref=CertificateSecretRef(name=store.tls_secret, key="ca.crt"))


def with_remote(resource: KVCacheTier, remote: RemoteTierSpec) -> KVCacheTier:
    """The resource with another remote tier."""
    tiers = resource.spec.tiers.model_copy(update={"remote": remote})
    return resource.model_copy(update={"spec": resource.spec.model_copy(update={"tiers": tiers})})


def store_notes(store: StorePlan | None) -> tuple[str, ...]:
    """What a reader of the budget should know: the store's pods are beside all engines'."""
    if store is None:
        return ()
    pod, held, buffers = store.size.memory_bytes, store.size.held_bytes, store.size.buffer_bytes
    parts = f"{size(held)} for values, {size(buffers)} for what connections have under way, the rest Valkey's"
    pods = "is a pod" if store.shards == 1 else f"is {store.shards} pods, each"
    lines = [f"the store {pods} of {size(pod)} of memory and {many(store.size.cores, 'core')}: {parts}"]
    if store.tls_secret:
        lines.append(f"the store's pods wait for Secret {store.tls_secret} (tls.crt, tls.key, ca.crt)")
    return (*lines,)


def store_size(memory_bytes: int, all_connections: int) -> StoreSize:
    """The size of a store of so much memory that so many connections use.

    Valkey counts buffers of its clients in `maxmemory` and evicts for them, yet only with the next command:
    they have a place of their own beside it, so that a burst neither evicts nor ends the pod.
    """
    buffer_bytes = server_buffer_bytes(all_connections)
    held_bytes = round_down((memory_bytes - _BASE_BYTES - buffer_bytes) * _SHARE // _WHOLE, MIB)
    # threads beyond the cores that there are spin: on 2 busy ones they took a hundred times as long
    cores = 4 if memory_bytes >= _LARGE_BYTES else 1
    return StoreSize(memory_bytes, held_bytes, buffer_bytes, cores, max(cores - 1, 1))


def memory_for(held_bytes: int, all_connections: int) -> int:
    """The least memory, in whole MiB, of a store that holds so much for so many connections."""
    values = ceil_div(round_up(held_bytes, MIB) * _WHOLE, _SHARE)
    return round_up(values + _BASE_BYTES + server_buffer_bytes(all_connections), MIB)


def _in_steps(all_connections: int) -> int:
    """Round up to a power of two: what a server has for connections changes only when it restarts, empty."""
    return max(_LEAST_CONNECTIONS, 1 << (all_connections - 1).bit_length())


def _too_little(planned: StoreSize, part_bytes: int, shards: int, all_connections: int) -> InvalidInputError:
    wanted = "capacity is" if shards == 1 else f"each of {shards} shards' part of capacity is"
    line = (
        f"{size(planned.memory_bytes)} holds {size(max(planned.held_bytes, 0))} beside Valkey and the "
        f"buffers of {many(all_connections, 'connection')}, and {wanted} {size(part_bytes)}: "
        f"give at least {size(memory_for(part_bytes, all_connections))}, more shards, or a smaller capacity"
    )
    return InvalidInputError("", Problem("spec.tiers.remote.managed.memory", line))
