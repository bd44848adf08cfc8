"""How backends that are not kvtier's reach a remote tier: its address, its Secret, and what goes into it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import parse_qs, urlsplit

from kvtier_common.redis_protocol import PORT, SCHEMES, size_class_above
from kvtier_operator.api.spec.tiers.remote import RemoteTierSpec
from kvtier_operator.planning.backends.traits import Caveat, RemoteUse
from kvtier_operator.planning.base.container_parts import secret_variable
from kvtier_operator.planning.base.tier_plan import TierChunks
from kvtier_operator.planning.units import ceil_div, count, size

RESP_SCHEMES: Final = tuple(scheme for scheme, encrypted in SCHEMES.items() if not encrypted)
"""Of servers that speak Redis's protocol without TLS."""
MOONCAKE: Final = "mooncake"
S3: Final = "s3"
LMCACHE_CANNOT: Final[Mapping[RemoteUse, str]] = {
    RemoteUse.CLUSTER: "knows one server, not several; name one that has all keys",
    RemoteUse.PREFIX: "names objects itself, without a prefix; name the bucket alone",
    RemoteUse.ENDPOINT_BY_NUMBER: "asks for BUCKET.HOST, and the endpoint is a number; give its name",
    RemoteUse.CA: "takes no CA, and a password for TLS only where its log shows it; remove tls",
    RemoteUse.MAC_KEY: "believes what the store gives; remove macKey, and let engines alone write",
    RemoteUse.WRITE_BOUND: "writes all that it computes; remove writeBytesPerSecond",
    RemoteUse.TTL: "lets nothing expire; remove ttlSeconds, and let the store evict what is not used",
    RemoteUse.SHARE: "knows models by name alone; remove shareAs, and give others a store",
    RemoteUse.MANAGED: "connects once, at its start, and a store that kvtier makes starts beside it, and "
    "anew when its pod moves or its password turns; remove managed, and name one that is up longer in url",
}
"""Of LMCache's two clients, in the engine and in its server. Of the last: a client of lmcache 0.5.6 that is
made before its server listens answers nothing from then on, one whose server restarts fails (both tried)."""
LMCACHE_CAVEAT: Final = Caveat(
    "RemoteKeyedByName",
    "LMCache finds what it wrote by the model's name: with other weights or another revision of that name it "
    "answers from what the former computed, and wrongly; empty the store before such a change, and give "
    "other resources of that name another store",
    "shares the store among all that serve a model of this name",
)
"""lmcache 0.5.6: utils.py, CacheEngineKey; v1/distributed/api.py, ObjectKey."""
_HEADER_BYTES: Final = 16
"""sdshdr and the byte after a string's end (redis, src/sds.h)."""
_KEY_BYTES: Final = 256
"""A key with the model's name, and its entry; an allowance."""
_REGION: Final = "us-east-1"
"""Of servers that are not Amazon's, which check the signature against it."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket of Amazon's or of a server that speaks its protocol."""

    name: str
    prefix: str  # of the name of every object; empty for none
    region: str
    endpoint: str  # base URL of the server

    @classmethod
    def of(cls, remote: RemoteTierSpec) -> Self:
        """The bucket of `s3://NAME/PREFIX?region=R&endpoint=URL`; Amazon's where there is no endpoint."""
        parts = urlsplit(remote.url or "")
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        region = query.get("region", _REGION)
        return cls(
            name=parts.netloc,
            prefix=parts.path.strip("/"),
            region=region,
            endpoint=query.get("endpoint", f"https://s3.{region}.amazonaws.com").rstrip("/"),
        )

    @property
    def scheme(self) -> str:
        """`http` or `https`."""
        return urlsplit(self.endpoint).scheme

    @property
    def host(self) -> str:
        """The bucket's own host name, with a port where the endpoint has one."""
        return f"{self.name}.{urlsplit(self.endpoint).netloc}"


def held_chunks(remote: RemoteTierSpec, chunk_bytes: int, values: int) -> TierChunks:
    """Chunks that go into a store in which others' values lie as they are.

    Args:
        remote: The store; a Redis counts its allocator's size class of a value, anything else its bytes.
        chunk_bytes: Of one chunk, all ranks of one engine.
        values: How many a chunk is there: one a rank that stores.
    """
    value_bytes = ceil_div(chunk_bytes, values)
    stored_bytes = values * (allocated_bytes(value_bytes) if remote.scheme in RESP_SCHEMES else value_bytes)
    return TierChunks(
        chunks=remote.capacity.bytes // stored_bytes,
        how=f"{size(remote.capacity.bytes)} / {count(stored_bytes)} B",
        memory_bytes=0,
        read_s=0,
    )


def allocated_bytes(value_bytes: int) -> int:
    """What a Redis counts in maxmemory for one value, its key included.

    Measured on Redis 7.0 and Valkey 9.1.
    """
    return size_class_above(value_bytes + _HEADER_BYTES) + _KEY_BYTES


def host_and_port(remote: RemoteTierSpec) -> tuple[str, int]:
    """Of a store that is one server; an IPv6 address is in brackets."""
    host, colon, port = (remote.hosts[0] if remote.hosts else "").rpartition(":")
    return (host, int(port)) if colon and not port.endswith("]") else (host + colon + port, PORT)


def s3_variables(remote: RemoteTierSpec) -> tuple[Mapping[str, Any], ...]:
    """Where S3's clients look for a key; without a Secret they ask for the identity of the pod."""
    return _variables(remote, "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", alone=False)


def resp_variables(remote: RemoteTierSpec) -> tuple[Mapping[str, Any], ...]:
    """Where LMCache's client of Redis's protocol looks for a user and a password.

    Source: lmcache 0.5.6, v1/storage_backend/connector/redis_adapter.py (RESPConnectorAdapter) and
    v1/distributed/l2_adapters/resp_l2_adapter.py.
    """
    return _variables(remote, "LMCACHE_RESP_USERNAME", "LMCACHE_RESP_PASSWORD", alone=True)


def _variables(
    remote: RemoteTierSpec, user: str, password: str, *, alone: bool
) -> tuple[Mapping[str, Any], ...]:
    """Both from the Secret; of a server that has no users there may be a password alone."""
    if remote.credentials is None:
        return ()
    secret = remote.credentials.secret_ref.name
    return (
        secret_variable(user, secret, "username", optional=alone),
        secret_variable(password, secret, "password"),
    )
