"""Whether the backend can use the remote tier, and whether that pays."""

from kvtier_common.tier import Tier
from kvtier_operator.api.quantity import parse_quantity
from kvtier_operator.planning.backends import any_backend_that, backends_that
from kvtier_operator.planning.base.node import CPU
from kvtier_operator.planning.checks.check import CheckInput, check
from kvtier_operator.planning.tiers.store_demand import client_millicores, store_demand
from kvtier_operator.planning.units import count, many, size
from kvtier_operator.planning.verdict import CheckResult
from kvtier_operator.planning.weights.device_weights import adapters_of


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
        return remote_pays.passed(f"{needed}: {demand.verdicts()}", reason="Pays")
    engines = parts.spec.engine.data_parallel_size
    return remote_pays.warn(
        "RemoteDoesNotPay",
        f"{needed}, and {remote.bandwidth} a pod gives each of {many(engines, 'engine')} "
        f"{(demand.engine_bytes_per_s or 0) / 1e9:.3g} GB/s: computing again is faster; give it a faster "
        "network, or remove tiers.remote",
        by_itself="measures both while it serves, and reads only where it is sooner",
        weight=200,
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
