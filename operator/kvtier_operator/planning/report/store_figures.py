"""The numbers of the remote tier's store, each with how it came about."""

from collections.abc import Iterator
from math import ceil

from kvtier_common.redis_protocol import SCHEMES
from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.tiers.remote import ManagedStore, RemoteEngine
from kvtier_operator.planning.base.node import CPU
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.plan import Figure
from kvtier_operator.planning.tiers.store_demand import StoreDemand, client_millicores, store_demand
from kvtier_operator.planning.units import count, many


def store_figures(spec: Spec, geometry: Geometry) -> Iterator[Figure]:
    """Of a resource with a remote tier; none without one."""
    remote = spec.tiers.remote
    if remote is None:
        return
    demand = store_demand(spec, geometry, remote)
    pods = max(spec.most_replicas, 1)
    if demand.break_even_bytes_per_s is not None and demand.token_s:
        yield Figure(
            "remote break-even bytes/s",
            round(demand.break_even_bytes_per_s),
            f"{count(geometry.kv_bytes_per_token)} B a token x {count(int(1 / demand.token_s))} tokens/s by "
            f"estimate: an engine reads sooner than it computes from there on; {demand.verdicts()}",
        )
    if remote.engine is RemoteEngine.MOONCAKE:
        lent = "of all processes together that lend the store memory (--global_segment_size)"
        yield Figure("store segment bytes", remote.capacity.bytes, lent)
    elif remote.scheme not in SCHEMES:
        yield Figure("store object bytes", remote.capacity.bytes, "what a lifecycle rule of the bucket keeps")
    else:
        bound = "of all shards together, with allkeys-lru"
        yield Figure("store maxmemory bytes", remote.capacity.bytes, bound)
    if demand.pod_bytes_per_s:
        rate = f"{demand.pod_bytes_per_s / 1e9:.3g} GB/s"
        yield Figure(
            "client millicores of a pod",
            ceil(demand.client_cores * 1000),
            f"while it reads {rate}{', with TLS' if remote.encrypted else ''}; {_asked(spec, geometry)}",
        )
        yield Figure(
            "store cores",
            ceil(demand.server_cores),
            f"while {many(pods, 'pod')} read {rate} each; fewer where not all do at a time",
        )
    if remote.scheme in SCHEMES:
        yield from _redis_figures(spec, demand, managed=remote.managed)


def _asked(spec: Spec, geometry: Geometry) -> str:
    """Who asks for the cores of a client."""
    resources = spec.engine.resources
    millicores = client_millicores(spec, geometry)
    if not millicores or CPU in {**resources.requests, **resources.limits}:
        return "have them in spec.engine.resources.requests"
    return f"the engine requests {millicores}m for it, enough to read as fast as it computes"


def _redis_figures(spec: Spec, demand: StoreDemand, managed: ManagedStore | None) -> Iterator[Figure]:
    """How many servers, and what each needs for its clients."""
    pods = max(spec.most_replicas, 1)
    if demand.pod_bytes_per_s:
        yield Figure(
            "store shards",
            demand.shards,
            "of 2 GB/s each, while all pods read"
            + (
                f"; managed has {managed.shards}, which they share"
                if managed and demand.shards > managed.shards
                else ""
            ),
        )
    yield Figure(
        "store clients",
        demand.clients,
        f"{many(pods, 'pod')} x {many(spec.engine.data_parallel_size, 'engine')} x connections: have "
        "maxclients above it",
    )
    yield Figure(
        "store buffer bytes",
        demand.buffer_bytes,
        "clients x 2 values of 4 MiB that wait to be sent: beside maxmemory, on each shard at worst",
    )
