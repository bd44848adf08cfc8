"""Whether the backend's client of the remote tier's store can what the resource asks."""

import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from kvtier_common.redis_protocol import PORT
from kvtier_operator.api.spec.tiers.remote import RemoteEngine, RemoteTierSpec
from kvtier_operator.planning.backends.traits import RemoteUse
from kvtier_operator.planning.checks.check import CheckInput, check
from kvtier_operator.planning.verdict import CheckResult

_STORE_CANNOT: Final[Mapping[RemoteEngine, Mapping[RemoteUse, str]]] = {
    RemoteEngine.MOONCAKE: {
        RemoteUse.CREDENTIALS: "asks nobody who they are; remove credentials, and keep it in a network apart",
        RemoteUse.TTL: "lets nothing expire; remove ttlSeconds, as it evicts what is not used",
    },
}
"""What a store of an engine cannot, whoever its client is: why, and what to do. A certificate, several
servers and `managed` are refused by the fields' own rules."""

_BY_NUMBER: Final = re.compile(r"endpoint=https?://(\[|[0-9.]+(:[0-9]+)?(&|$))")
"""An endpoint that is an IP address."""

_HAS_PORT: Final = re.compile(r":[0-9]+$")


@check("spec.tiers.remote")
def remote_use(parts: CheckInput) -> CheckResult:
    """What the backend's client and the store cannot, and what to know of it."""
    remote, traits, backend = parts.spec.tiers.remote, parts.traits.remote, parts.spec.backend
    if remote is None:
        return remote_use.passed("no remote tier", reason="NoRemoteTier")
    servers = [host if _HAS_PORT.search(host) else f"{host}:{PORT}" for host in remote.hosts]
    if len(set(servers)) < len(servers):
        twice = next(host for host in servers if servers.count(host) > 1)
        return remote_use.reject(
            "SameServerTwice",
            f"{twice} is there twice, and each server has a part of the blocks: name each once",
            field=f"{remote_use.field}.url",
        )
    asked = set(_requested_uses(remote)) if remote.scheme in traits.schemes else set[RemoteUse]()
    reasons = {use: f"a store of engine {remote.engine} {why}" for use, why in _store_cannot(remote).items()}
    reasons |= {use: f"backend {backend} {why}" for use, why in traits.cannot.items()}
    faults = [(f"{remote_use.field}.{use.field}", why) for use, why in reasons.items() if use in asked]
    if faults:
        return remote_use.reject_each("RemoteNotPossible", faults)
    if (caveat := traits.caveat) and remote.scheme in traits.schemes:
        return remote_use.warn(caveat.reason, caveat.message, by_itself=caveat.by_itself)
    return remote_use.passed(f"backend {backend} can all that is asked for")


def _store_cannot(remote: RemoteTierSpec) -> Mapping[RemoteUse, str]:
    return _STORE_CANNOT.get(remote.engine, {})


def _requested_uses(remote: RemoteTierSpec) -> Iterator[RemoteUse]:
    asked = {
        RemoteUse.CLUSTER: len(remote.hosts) > 1,
        RemoteUse.PREFIX: bool(urlsplit(remote.url or "").path.strip("/")),
        RemoteUse.ENDPOINT_BY_NUMBER: _BY_NUMBER.search(remote.url or "") is not None,
        RemoteUse.CREDENTIALS: remote.credentials is not None,
        RemoteUse.CA: remote.tls is not None,
        RemoteUse.MAC_KEY: remote.mac_key is not None,
        RemoteUse.WRITE_BOUND: remote.write_bytes_per_second is not None,
        RemoteUse.TTL: remote.ttl_seconds is not None,
        RemoteUse.CONNECTIONS: remote.connections is not None,
        RemoteUse.SHARE: remote.share_as is not None,
        RemoteUse.MANAGED: remote.managed is not None,
    }
    yield from (use for use, is_asked in asked.items() if is_asked)
