"""Whether the backend's client of the remote tier's store can what the resource asks."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from kvtier_operator.api.spec.tiers.remote import RemoteTierSpec
from kvtier_operator.planning.backends.traits import RemoteUse
from kvtier_operator.planning.checks.check import CheckInput, check
from kvtier_operator.planning.verdict import CheckResult


@check("spec.tiers.remote")
def remote_use(parts: CheckInput) -> CheckResult:
    """What the backend's client cannot, and what to know of it."""
    remote, traits, backend = parts.spec.tiers.remote, parts.traits.remote, parts.spec.backend
    if remote is None:
        return remote_use.passed("no remote tier", reason="NoRemoteTier")
    asked = set(_asked(remote)) if remote.scheme in traits.schemes else set[RemoteUse]()
    faults = [
        (f"{remote_use.field}.{use.field}", f"backend {backend} {why}")
        for use, why in traits.cannot.items()
        if use in asked
    ]
    if faults:
        return remote_use.reject_each("RemoteNotPossible", faults)
    if caveat := traits.caveat:
        return remote_use.warn(caveat.reason, caveat.message, by_itself=caveat.by_itself)
    return remote_use.passed(f"backend {backend} can all that is asked for")


def _asked(remote: RemoteTierSpec) -> Iterator[RemoteUse]:
    asked = {
        RemoteUse.CLUSTER: len(remote.hosts) > 1,
        RemoteUse.PREFIX: bool(urlsplit(remote.url or "").path.strip("/")),
        RemoteUse.CREDENTIALS: remote.credentials is not None,
        RemoteUse.CA: remote.tls is not None,
        RemoteUse.WRITE_BOUND: remote.write_bytes_per_second is not None,
        RemoteUse.TTL: remote.ttl_seconds is not None,
        RemoteUse.CONNECTIONS: remote.connections is not None,
        RemoteUse.SHARE: remote.share_as is not None,
        RemoteUse.MANAGED: remote.managed is not None,
    }
    yield from (use for use, is_asked in asked.items() if is_asked)
