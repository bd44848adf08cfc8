"""The store of a resource's own: what its server may hold, and what it needs beside that."""

from dataclasses import dataclass
from typing import Final

from kvtier_common.redis_protocol import PORT
from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.api.spec.tiers.remote import CredentialsSecret, RemoteCredentials, RemoteTierSpec
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.base.names import Names
from kvtier_operator.planning.base.remote_store import connections, server_buffer_bytes
from kvtier_operator.planning.images import ImageSource
from kvtier_operator.planning.units import GIB, MIB, ceil_div, many, round_down, round_up, size

_PATH: Final = "spec.tiers.remote"
_LEAST_CONNECTIONS: Final = 32
_BASE_BYTES: Final = 64 * MIB
"""Code, threads, probes and tables of an empty server."""
_SHARE, _WHOLE = 9, 10
"""Of what is left, the share that values may take: jemalloc keeps freed pages for 10 s and rounds up."""
_LARGE_BYTES: Final = 8 * GIB
"""From here on a store has cores for threads that read and write its sockets."""


@dataclass(frozen=True, slots=True)
class StoreSize:
    """What the pod of a store gets, and what its server holds in it."""

    memory_bytes: int  # of the pod, requested and its limit
    held_bytes: int  # Valkey's `maxmemory`
    buffer_bytes: int  # of the pod, for what connections have under way
    cores: int  # that the pod asks for
    io_threads: int  # Valkey's own number, its main thread among them


@dataclass(frozen=True, slots=True)
class StorePlan:
    """The store of one resource."""

    size: StoreSize
    image: str
    secret: str  # name of the Secret with its password
    makes_secret: bool  # whether that Secret is kvtier's to make, rather than one that the resource names


def plan_store(resource: KVCacheTier, images: ImageSource) -> StorePlan | None:
    """The store that is made for a resource; None where it has none, or one of somebody else's.

    Raises:
        InvalidInputError: It asks for several servers, for TLS, or for more than its memory holds.
    """
    remote = resource.spec.tiers.remote
    if remote is None or remote.managed is None:
        return None
    spec = resource.spec
    engines = max(spec.most_replicas, 1) * spec.engine.data_parallel_size
    all_connections = _in_steps(engines * connections(spec, remote))
    planned = store_size(_memory_bytes(remote, all_connections), all_connections)
    _refuse(remote, planned, all_connections)
    named = remote.credentials
    return StorePlan(
        size=planned,
        image=images.valkey(),
        secret=named.secret_ref.name if named else Names.of_resource(resource).store,
        makes_secret=named is None,
    )


def with_store(resource: KVCacheTier, store: StorePlan | None) -> KVCacheTier:
    """The resource as if it had named the store that is made for it: its engines use it as any other."""
    remote = resource.spec.tiers.remote
    if store is None or remote is None:
        return resource
    credentials = RemoteCredentials(secret_ref=CredentialsSecret(name=store.secret))
    url = f"redis://{Names.of_resource(resource).store}:{PORT}"
    return with_remote(resource, remote.model_copy(update={"url": url, "credentials": credentials}))


def with_remote(resource: KVCacheTier, remote: RemoteTierSpec) -> KVCacheTier:
    """The resource with another remote tier."""
    tiers = resource.spec.tiers.model_copy(update={"remote": remote})
    return resource.model_copy(update={"spec": resource.spec.model_copy(update={"tiers": tiers})})


def store_notes(store: StorePlan | None) -> tuple[str, ...]:
    """What a reader of the budget should know: the store's pod is beside all engines'."""
    if store is None:
        return ()
    pod, held, buffers = store.size.memory_bytes, store.size.held_bytes, store.size.buffer_bytes
    parts = f"{size(held)} for values, {size(buffers)} for what connections have under way, the rest Valkey's"
    return (f"the store is a pod of {size(pod)} of memory and {many(store.size.cores, 'core')}: {parts}",)


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


def _memory_bytes(remote: RemoteTierSpec, all_connections: int) -> int:
    memory = remote.managed.memory if remote.managed else None
    return memory.bytes if memory else memory_for(remote.capacity.bytes, all_connections)


def _refuse(remote: RemoteTierSpec, planned: StoreSize, all_connections: int) -> None:
    problems = list[Problem]()
    if remote.managed and remote.managed.shards > 1:
        problems.append(
            Problem(
                f"{_PATH}.managed.shards",
                "kvtier makes one server and no cluster: write 1 and more memory, or give a cluster's url",
            )
        )
    if remote.tls:
        problems.append(
            Problem(
                f"{_PATH}.tls",
                "a managed store has no certificate: remove tls and encrypt the pods' network, or give a url",
            )
        )
    if planned.held_bytes < remote.capacity.bytes:
        least = memory_for(remote.capacity.bytes, all_connections)
        problems.append(
            Problem(
                f"{_PATH}.managed.memory",
                f"{size(planned.memory_bytes)} holds {size(max(planned.held_bytes, 0))} beside Valkey and "
                f"the buffers of {many(all_connections, 'connection')}, and capacity is "
                f"{size(remote.capacity.bytes)}: give at least {size(least)}, or a smaller capacity",
            )
        )
    if problems:
        raise InvalidInputError("", *problems)
