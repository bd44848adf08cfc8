"""When reading the remote tier is sooner than computing, and what its store has to be for that."""

from dataclasses import dataclass
from math import ceil
from typing import Final

from kvtier_operator.api.resource import Spec
from kvtier_operator.api.spec.tiers.remote import RemoteTierSpec
from kvtier_operator.planning.backends import traits_of
from kvtier_operator.planning.base.remote_store import connections, costs_of, server_buffer_bytes
from kvtier_operator.planning.model_shape.geometry import Geometry
from kvtier_operator.planning.units import GIB
from kvtier_operator.planning.weights.pace import prefill_token_s

NETWORKS: Final = {"25 GbE": 2.9e9, "100 GbE": 11.6e9, "200 GbE": 23e9, "400 GbE": 46e9}
"""Bytes a second that TCP carries over usual links."""
_TLS_FACTOR: Final = 3.5
_SERVER_BYTES_PER_S: Final = 2e9
"""Of one Redis or Valkey: it sends by one core unless it has threads for that. Both were measured with Redis
7.0 and Valkey 9.1 on loopback, on two busy cores."""
_TENTHS: Final = 10
"""Of a core, in which requests are rounded up."""
MARGIN: Final = 1.05
"""How much sooner reading has to be, as engines have it."""


@dataclass(frozen=True, slots=True)
class StoreDemand:
    """What the remote tier asks of network, engines and store."""

    # of one engine, from which on reading is sooner; None where nothing tells its pace
    break_even_bytes_per_s: float | None
    token_s: float | None  # seconds that the engine computes a token in; None where nothing tells
    engine_bytes_per_s: float | None  # of each engine, by the resource; None where it does not say
    pod_bytes_per_s: float | None  # that a pod reads at: given, or the break-even of its engines
    client_cores: float  # of a pod, while it reads at that
    usual_client_cores: float  # of a pod that reads half its tokens and computes the other half
    server_cores: float  # of all servers, while all pods do
    # that its servers give an engine which reads alone; None where nothing tells how many there are
    store_bytes_per_s: float | None
    shards: int  # Redis servers that send what all pods read
    clients: int  # connections to each server, all engines together
    buffer_bytes: int  # of each Redis server beside maxmemory, while all wait

    def verdicts(self) -> str:
        """How many times the break-even each bandwidth is; empty where nothing tells it."""
        if self.break_even_bytes_per_s is None:
            return ""
        own = self.engine_bytes_per_s
        known = {f"{own / 1e9:.3g} GB/s": own} if own else NETWORKS
        return ", ".join(f"{name} {rate / self.break_even_bytes_per_s:.1f}x" for name, rate in known.items())

    @property
    def pays(self) -> bool | None:
        """Whether network and servers give enough; None where neither is known, or nothing tells the pace."""
        known = [rate for rate in (self.engine_bytes_per_s, self.store_bytes_per_s) if rate is not None]
        if self.break_even_bytes_per_s is None or not known:
            return None
        return min(known) >= MARGIN * self.break_even_bytes_per_s


def store_demand(spec: Spec, geometry: Geometry, remote: RemoteTierSpec) -> StoreDemand:
    """What a resource's remote tier asks for, all its pods at work."""
    engines, pods = spec.engine.data_parallel_size, max(spec.most_replicas, 1)
    token_s = prefill_token_s(spec.engine, geometry)
    break_even = geometry.kv_bytes_per_token / token_s if token_s else None
    bandwidth = remote.bandwidth.bytes if remote.bandwidth else None
    pod = bandwidth or (break_even * engines if break_even else None)
    all_bytes = (pod or 0) * pods
    costs, tls = costs_of(remote), _TLS_FACTOR if remote.encrypted else 1
    carried = engines * connections(spec, remote) * costs.connection_bytes_per_s
    usual = min(pod or 0, break_even * engines if break_even else carried, carried)
    core_s_per_byte = (costs.client_core_s_per_gib * tls + costs.mac_core_s_per_gib) / GIB
    clients = pods * engines * connections(spec, remote)
    return StoreDemand(
        break_even_bytes_per_s=break_even,
        token_s=token_s,
        engine_bytes_per_s=bandwidth / engines if bandwidth else None,
        pod_bytes_per_s=pod,
        client_cores=(pod or 0) * core_s_per_byte,
        usual_client_cores=usual * core_s_per_byte,
        server_cores=all_bytes / GIB * costs.server_core_s_per_gib * tls,
        store_bytes_per_s=remote.managed.shards * _SERVER_BYTES_PER_S if remote.managed else None,
        shards=max(ceil(all_bytes / _SERVER_BYTES_PER_S), 1),
        clients=clients,
        buffer_bytes=server_buffer_bytes(clients),
    )


def client_millicores(spec: Spec, geometry: Geometry) -> int:
    """What a pod requests for the remote tier's client; 0 without one, or where its need is not known.

    A pod that asks for no CPU gets next to none beside others. Not what the whole bandwidth takes: a request
    holds cores back that a pod has idle most of the time, and above it what is free is had all the same.
    """
    remote = spec.tiers.remote
    if remote is None or not traits_of(spec.backend).remote.own_client:
        return 0
    return ceil(store_demand(spec, geometry, remote).usual_client_cores * _TENTHS) * (1000 // _TENTHS)
