"""`spec.tiers.remote`: one store behind all engines, on an engine that exists."""

import re
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from kvtier_common.redis_protocol import SCHEMES, SHARE_PATTERN
from kvtier_connector.config import REMOTE_CONNECTIONS
from kvtier_operator.api.base import ApiModel, rule
from kvtier_operator.api.formats import DnsSubdomain
from kvtier_operator.api.quantity import ByteBound, ByteQuantity
from kvtier_operator.api.spec.model import SecretKey
from kvtier_operator.api.spec.tiers import TierFields, TierSpec

_HOST: Final = r"([A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:]+\])"
_PORT: Final = (
    "([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"  # to 65535
)
_GROUP: Final = "[0-9A-Fa-f]{1,4}"
_IPV6: Final = (
    rf"^(({_GROUP}:){{7}}{_GROUP}|({_GROUP}:){{1,7}}:|:(:{_GROUP}){{1,7}}|::|"
    + "|".join(rf"({_GROUP}:){{1,{7 - behind}}}(:{_GROUP}){{1,{behind}}}" for behind in range(1, 7))
    + ")$"
)
"""RFC 4291, 2.2, without IPv4 in it."""
_HOSTS: Final = rf"{_HOST}(:{_PORT})?(,{_HOST}(:{_PORT})?)*"
_S3_QUERY: Final = rf"(region=[a-z0-9-]+|endpoint=https?://{_HOST}(:{_PORT})?)"
STORE_URL_PATTERN: Final = (
    rf"^(({'|'.join(SCHEMES)})://{_HOSTS}/?|mooncake://{_HOST}:{_PORT}"
    rf"|s3://[a-z0-9.-]+(/[A-Za-z0-9._/-]*)?([?]{_S3_QUERY}(&{_S3_QUERY})?)?)$"
)
"""Without a user or a password, which everybody who reads the resource would see."""
_SPLIT: Final = re.compile(r"(?P<scheme>[a-z0-9]+)://(?P<rest>.*)")
StoreUrl = Annotated[str, Field(min_length=1, max_length=1024, pattern=STORE_URL_PATTERN)]


class RemoteEngine(StrEnum):
    """What the store runs."""

    REDIS = "Redis"
    MOONCAKE = "Mooncake"


class CredentialsSecret(ApiModel):
    """A Secret in the resource's namespace with what an engine signs in by."""

    name: DnsSubdomain = Field(
        description="Name of the Secret: under password the password, under username the user, where it is not the default one."
    )


class RemoteCredentials(ApiModel):
    """How engines sign in."""

    secret_ref: CredentialsSecret = Field(
        description="Secret with password and, where wanted, username. kvtier never reads it: the pod does, again at each connect."
    )


class CertificateSecretRef(ApiModel):
    """A key of a Secret in the resource's namespace with a certificate."""

    name: DnsSubdomain = Field(description="Name of the Secret.")
    key: SecretKey = Field(
        "ca.crt",
        description="Key in the Secret that holds the certificate.",
    )


class RemoteTls(ApiModel):
    """Whom engines believe; TLS itself is on by the URL's scheme."""

    ca_secret_ref: CertificateSecretRef = Field(
        description="Secret with the certificate of the authority that signed the store's, in PEM. Without it the image's authorities count."
    )


class MacSecretRef(ApiModel):
    """A key of a Secret in the resource's namespace with the bytes that engines of one share have in common."""

    name: DnsSubdomain = Field(description="Name of the Secret.")
    key: SecretKey = Field(
        "key",
        description="Key in the Secret under which 16 bytes or more are, such as openssl rand -hex 32 prints.",
    )


class MacKey(ApiModel):
    """What proves that a value is an engine's."""

    secret_ref: MacSecretRef = Field(
        description="Secret with the key. kvtier never reads it: the pod does, at its start."
    )


class ManagedTls(ApiModel):
    """A certificate for the servers that kvtier makes."""

    secret_name: DnsSubdomain = Field(
        description="Secret in the resource's namespace with tls.crt, tls.key and ca.crt, as cert-manager makes it, for the names NAME-store-0.NAMESPACE.svc and so on, one of each shard."
    )


class ManagedStore(ApiModel):
    """Valkeys that kvtier makes for this resource alone."""

    memory: ByteQuantity | None = Field(
        None,
        description="Memory of each shard's pod; what its part of the capacity needs when empty.",
    )
    shards: int = Field(
        1,
        description="Servers that share the capacity. Each has its part of the blocks, which is lost with it; the others serve on.",
        ge=1,
        le=64,
    )
    tls: ManagedTls | None = Field(
        None,
        description="Encrypts the connections of engines, by a certificate of yours; they are in the clear when empty.",
    )


class RemoteTierSpec(TierSpec):
    """A store of all engines."""

    capacity: ByteQuantity = Field(
        description="What the store may hold, all engines together: give at most its own bound (maxmemory)."
    )
    engine: RemoteEngine = Field(
        RemoteEngine.REDIS,
        description="What the store runs. Redis: any server with its protocol, such as Valkey.",
    )
    url: StoreUrl | None = Field(
        None,
        description="Where it is: redis://HOST:PORT (6379 without one), with TLS rediss://HOST:PORT, or the same with valkey and valkeys; several HOST:PORT with commas between them, of one cluster or of servers that share the blocks out by name. mooncake://HOST:PORT of a Mooncake master; s3://BUCKET/PREFIX for backends that keep objects, with ?region=REGION, and ?endpoint=https://HOST:PORT where it is not Amazon's. Required unless managed; without user and password.",
    )
    credentials: RemoteCredentials | None = Field(
        None, description="How engines sign in; as nobody when empty."
    )
    tls: RemoteTls | None = Field(
        None,
        description="Whom engines believe, with rediss://, valkeys:// or s3://; the image's authorities when empty.",
    )
    mac_key: MacKey | None = Field(
        None,
        description="Key of a message authentication code that engines put behind each value (HMAC-SHA256): what others wrote is not believed. Costs about 0.6 s of CPU a GiB, both ways. Engines with other keys do not see each other's blocks. A checksum alone when empty, which finds damage.",
    )
    bandwidth: ByteQuantity | None = Field(
        None,
        description="Bytes a second from the store to one engine pod, such as 11600M with 100 GbE. The plan says whether reading pays at it, and at four usual ones when empty.",
    )
    write_bytes_per_second: ByteBound | None = Field(
        None,
        description="Bound on what an engine pod writes in a second; none when empty. What it keeps out stays in the pod's tiers alone.",
    )
    ttl_seconds: int | None = Field(
        None,
        description="After how many seconds the store forgets what was written; when it needs the room when empty.",
        ge=1,
        le=31_536_000,
    )
    connections: int | None = Field(
        None,
        description="Connections of each engine to the store; as many as the bandwidth needs when empty.",
        ge=REMOTE_CONNECTIONS[0],
        le=REMOTE_CONNECTIONS[-1],
    )
    share_as: str | None = Field(
        None,
        description="Name under which blocks are shared: resources of one model with the same name and the same store read each other's. This resource's namespace/name when empty.",
        min_length=1,
        max_length=128,
        pattern=SHARE_PATTERN,
    )
    managed: ManagedStore | None = Field(
        None, description="Has kvtier make one or several Valkeys for this resource, in place of url."
    )

    @rule(
        "has(self.url) != has(self.managed)",
        "give either the store's url, or managed for one that kvtier makes",
        field=".url",
    )
    def has_one_store(self) -> bool:
        """Blocks go to one place."""
        return (self.url is None) != (self.managed is None)

    @rule(
        "!has(self.managed) || self.engine != 'Mooncake'",
        "managed makes Valkeys, which engine Redis speaks to: remove engine, or give the url of a Mooncake master in place of managed",
        field=".engine",
    )
    def managed_is_of_engine(self) -> bool:
        """Mooncake's master and its memory are a cluster of their own."""
        return self.managed is None or self.engine is not RemoteEngine.MOONCAKE

    @rule(
        "!has(self.url) || (self.engine == 'Mooncake') == self.url.startsWith('mooncake://')",
        "the URL is of another engine: mooncake:// is of engine Mooncake, all others are of engine Redis",
        field=".url",
    )
    def url_is_of_engine(self) -> bool:
        """A scheme says the protocol."""
        return self.url is None or (self.engine is RemoteEngine.MOONCAKE) == (self.scheme == "mooncake")

    @rule(
        f"!has(self.url) || self.url.split('[').all(part, !part.contains(']') || part.split(']')[0].matches('{_IPV6}'))",
        "what is in brackets is no IPv6 address; write it as [2001:db8::1]",
        field=".url",
    )
    def brackets_hold_an_address(self) -> bool:
        """Everybody who reads the URL would fail at it in another way."""
        held = (part.partition("]") for part in (self.url or "").split("["))
        return all(re.search(_IPV6, address) is not None for address, end, _ in held if end)

    @rule(
        "!has(self.tls) || (has(self.managed) && has(self.managed.tls)) || has(self.url) && (self.url.startsWith('rediss://') || self.url.startsWith('valkeys://') || (self.url.startsWith('s3://') && !self.url.contains('endpoint=http://')))",
        "tls needs a URL that turns TLS on, or managed.tls: begin the URL, or a bucket's endpoint, with rediss://, valkeys:// or https://, or remove tls",
        field=".tls",
    )
    def tls_is_on(self) -> bool:
        """Who names an authority believes that the connection is encrypted."""
        is_bucket = self.scheme == "s3" and "endpoint=http://" not in (self.url or "")
        return self.tls is None or self.encrypted or is_bucket

    @property
    def scheme(self) -> str:
        """Of the URL; of a managed store `redis`, or `rediss` with TLS."""
        match = _SPLIT.fullmatch(self.url or "")
        if match:
            return match["scheme"]
        return "rediss" if self.managed and self.managed.tls else "redis"

    @property
    def hosts(self) -> tuple[str, ...]:
        """`HOST` or `HOST:PORT` of a URL's servers, as written; none of a managed store."""
        match = _SPLIT.fullmatch(self.url or "")
        return (*match["rest"].rstrip("/").split(","),) if match else ()

    @property
    def encrypted(self) -> bool:
        """Whether connections use TLS."""
        return SCHEMES.get(self.scheme, False)


FIELDS: Final = TierFields(
    title="remote",
    status="A store of all engines.",
    tells=("pays",),
    spec=(
        RemoteTierSpec | None,
        Field(None, description="A store of all engines, such as Valkey, behind the tiers of each pod."),
    ),
)
