"""Whether the backend can use the remote tier, and whether that pays."""

from kvtier_operator.planning.backends import any_backend_that, backends_that
from kvtier_operator.planning.checks.check import CheckInput, check
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


def _anyone(scheme: str) -> bool:
    return bool(backends_that(lambda traits: scheme in traits.remote_schemes))
