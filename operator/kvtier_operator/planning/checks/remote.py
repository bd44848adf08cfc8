"""Whether the backend can use the remote tier, and whether that pays."""

from kvtier_operator.planning.backends import any_backend_that, backends_that
from kvtier_operator.planning.checks.check import CheckInput, check
from kvtier_operator.planning.tiers.store_demand import store_demand
from kvtier_operator.planning.units import many
from kvtier_operator.planning.verdict import CheckResult


@check("spec.tiers.remote.url")
def remote_engine(parts: CheckInput) -> CheckResult:
    """A backend has clients for some stores and not for others."""
    remote, backend = parts.spec.tiers.remote, parts.spec.backend
    if remote is None:
        return remote_engine.passed("no remote tier", reason="NoRemoteTier")
    if remote.managed:
        return remote_engine.reject(
            "NoManagedStore", "this version makes no store; give url", field="spec.tiers.remote.managed"
        )
    scheme = remote.scheme
    if scheme in parts.traits.remote_schemes:
        return remote_engine.passed(f"backend {backend} uses {scheme}://")
    able = any_backend_that(lambda traits: scheme in traits.remote_schemes) if _anyone(scheme) else ""
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


def _anyone(scheme: str) -> bool:
    return bool(backends_that(lambda traits: scheme in traits.remote_schemes))
