"""Whether the backend can use the remote tier, and whether that pays."""

from typing import Final

from kvtier_common.redis_protocol import SCHEMES
from kvtier_common.tier import Tier
from kvtier_operator.api.quantity import parse_quantity
from kvtier_operator.api.spec.tiers.remote import RemoteEngine
from kvtier_operator.planning.backends import any_backend_that, backends_that
from kvtier_operator.planning.base.devices import is_of_a_network, named_devices
from kvtier_operator.planning.base.node import CPU
from kvtier_operator.planning.checks.check import CheckInput, check
from kvtier_operator.planning.tiers.store_demand import client_millicores, store_demand
from kvtier_operator.planning.units import count, many, size
from kvtier_operator.planning.verdict import CheckResult
from kvtier_operator.planning.weights.device_weights import adapters_of

_PROTOCOL: Final = "MOONCAKE_PROTOCOL"
"""Mooncake's own variable (mooncake/mooncake_config.py)."""


@check("spec.tiers.remote.url")
def remote_engine(parts: CheckInput) -> CheckResult:
    """A backend has clients for some stores and not for others."""
    remote, backend = parts.spec.tiers.remote, parts.spec.backend
    if remote is None:
        return remote_engine.passed("no remote tier", reason="NoRemoteTier")
    scheme = remote.scheme
    if scheme in parts.traits.remote.schemes:
        return remote_engine.passed(f"backend {backend} uses {scheme}://")
    able = any_backend_that(lambda traits: scheme in traits.remote.schemes) if _anyone(scheme) else ""
    return remote_engine.reject(
        "NoClientForStore",
        f"backend {backend} cannot use {scheme}://; "
        + (
            f"take spec.backend {able}, or remove tiers.remote"
            if able
            else "no backend can; give another store"
        ),
    )


@check("spec.tiers.remote.bandwidth")
def remote_pays(parts: CheckInput) -> CheckResult:
    """Whether an engine reads sooner than it computes, by the parameters that compute a token."""
    remote = parts.spec.tiers.remote
    if remote is None:
        return remote_pays.passed("no remote tier", reason="NoRemoteTier")
    demand = store_demand(parts.spec, parts.geometry, remote)
    if demand.break_even_bytes_per_s is None:
        return remote_pays.passed("engines measure whether it pays", reason="PrefillUnknown")
    needed = f"it pays from {demand.break_even_bytes_per_s / 1e9:.3g} GB/s an engine on"
    if demand.pays is not False:
        servers = (
            f"; {many(demand.shards, 'server')} give that to all pods at once" if demand.shards > 1 else ""
        )
        return remote_pays.passed(f"{needed}: {demand.verdicts()}{servers}", reason="Pays")
    of_store, of_network = demand.store_bytes_per_s, demand.engine_bytes_per_s
    if of_store is not None and (of_network is None or of_store < of_network):
        shards = remote.managed.shards if remote.managed else 1
        gives = f"{many(shards, 'server')} of managed {'give' if shards > 1 else 'gives'}"
        why = f"{gives} about {of_store / 1e9:.3g} GB/s to all engines together"
        better, field = "raise its shards", f"{remote_pays.field.rpartition('.')[0]}.managed"
    else:
        engines = parts.spec.engine.data_parallel_size
        engine_gb = (of_network or 0) / 1e9
        why = f"{remote.bandwidth} a pod gives each of {many(engines, 'engine')} {engine_gb:.3g} GB/s"
        better, field = "give it a faster network", remote_pays.field
    return remote_pays.warn(
        "RemoteDoesNotPay",
        f"{needed}, and {why}: computing again is faster by estimate; {better}, or remove tiers.remote",
        by_itself=(
            "measures both while it serves, and reads only where it is sooner"
            if parts.traits.remote.own_client
            else "lets the backend read from it all the same"
        ),
        weight=200,
        field=field,
    )


@check("spec.tiers.remote.credentials")
def remote_is_guarded(parts: CheckInput) -> CheckResult:
    """An answer is made of what the store gives: who writes there may choose it."""
    remote = parts.spec.tiers.remote
    if remote is None or remote.managed is not None or remote.scheme not in SCHEMES:
        return remote_is_guarded.passed("no remote tier that asks for a password", reason="NoRemoteTier")
    if remote.credentials is not None or parts.observed.machine is not None:
        return remote_is_guarded.passed("engines sign in")
    return remote_is_guarded.warn(
        "RemoteOpen",
        "engines sign in as nobody: whoever reaches the store can read and replace what these engines share; "
        "give credentials of a user who may use the keys of this share alone",
        by_itself="connects without a password",
        weight=50,
    )


@check("spec.engine.env[MOONCAKE_PROTOCOL]")
def remote_rdma(parts: CheckInput) -> CheckResult:
    """Mooncake's client takes a network adapter of the pod's; without one it does not start."""
    remote, spec = parts.spec.tiers.remote, parts.spec
    claims = [claim.name for claim in spec.engine.resource_claims]
    protocol = next((variable.value for variable in spec.engine.env if variable.name == _PROTOCOL), None)
    if remote is None or remote.engine is not RemoteEngine.MOONCAKE or not parts.traits.remote.own_client:
        return remote_rdma.passed("no client of Mooncake's", reason="NoMooncake")
    if protocol != "rdma":
        return remote_rdma.passed(f"the store is reached by {protocol or 'tcp'}")
    if any(map(is_of_a_network, (*named_devices(spec), *claims))):
        return remote_rdma.passed("the pod has an adapter for RDMA")
    return remote_rdma.warn(
        "NoRDMADevice",
        "rdma is asked for, and the pod has no adapter for it: name its device plugin's in "
        "spec.engine.resources.limits, such as rdma/hca: 1; its client locks memory, too, for which write "
        "spec.tiers.cpu.memlock.policy Require where the node's LimitMEMLOCK is not infinity",
        by_itself="starts the client all the same, and engines do without the store",
        weight=150,
    )


@check("spec.engine.resources.requests.cpu")
def remote_cores(parts: CheckInput) -> CheckResult:
    """What the resource asks for is the engine's and the store's client's together."""
    resources = parts.spec.engine.resources
    millicores = client_millicores(parts.spec, parts.geometry)
    asked = resources.requests.get(CPU) or resources.limits.get(CPU)
    if not millicores or parts.observed.machine is not None:
        return remote_cores.passed("no cores for a remote tier", reason="NoRemoteTier")
    if asked is None:
        return remote_cores.passed(f"{millicores}m of a CPU are requested for the remote tier's client")
    if parse_quantity(str(asked)) * 1000 >= millicores:
        return remote_cores.passed(f"{asked} of a CPU asked for, {millicores}m of it for the remote tier")
    return remote_cores.warn(
        "RemoteCPULow",
        f"the remote tier's client alone takes {millicores}m of a CPU, and {asked} is asked for: beside "
        "other pods it reads slowly; add that to what the engine needs, or leave it out and kvtier requests "
        "it",
        by_itself="asks for what is written",
        weight=60,
    )


@check("spec.tiers.remote.capacity")
def remote_capacity(parts: CheckInput) -> CheckResult:
    """What it holds beside what the pods have themselves."""
    remote, spec = parts.spec.tiers.remote, parts.spec
    if remote is None:
        return remote_capacity.passed("no remote tier", reason="NoRemoteTier")
    tokens = parts.tiers.by_tier[Tier.REMOTE].tokens
    if not tokens:
        return remote_capacity.reject(
            "RemoteHoldsNothing",
            f"{size(remote.capacity.bytes)} cannot hold one chunk of {parts.backend.tokens_per_chunk} "
            "tokens; raise it",
        )
    pods = max(spec.most_replicas, 1)
    own = pods * parts.tiers.cpu.tokens
    numbers = (
        f"the store holds {count(tokens)} tokens, the CPU tiers of {many(pods, 'pod')} hold {count(own)}"
    )
    if tokens > own:
        return remote_capacity.passed(numbers)
    return remote_capacity.warn(
        "RemoteSmall",
        f"{numbers}: it serves pods that start and what another pod has, and forgets before they do; a "
        "larger one finds more",
    )


@check("spec.tiers.remote")
def adapters_in_store(parts: CheckInput) -> CheckResult:
    """An adapter's name says nothing of its weights to others who write under the same name."""
    if parts.spec.tiers.remote is None:
        return adapters_in_store.passed("no remote tier", reason="NoRemoteTier")
    if adapters_of(parts.spec) is None:
        return adapters_in_store.passed("no adapters")
    if parts.traits.remote.keeps_adapters:
        return adapters_in_store.warn(
            "ReplacedAdaptersFound",
            "blocks are found by an adapter's name and path: once these stand for new weights, prompts are "
            "answered from what the former computed, and wrongly; give new weights another name, empty the "
            "store, or take backend " + any_backend_that(lambda backend: not backend.remote.keeps_adapters),
            weight=40,
        )
    return adapters_in_store.warn(
        "AdaptersNotShared",
        "what LoRA adapters compute never goes to the store, which cannot tell their weights apart; a model "
        "of merged weights is shared as any other",
        by_itself="keeps it in the tiers of each pod",
    )


def _anyone(scheme: str) -> bool:
    return bool(backends_that(lambda traits: scheme in traits.remote.schemes))
