"""What an Envoy in front of engines is to do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from kvtier_operator.api.spec.router import FailureMode

BODY_BYTES: Final = 64 * 1024**2
"""Largest request of a local run, which Envoy holds while it comes. The picker's own limit is lower."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where something listens."""

    host: str  # an IP address, or a name that DNS knows
    port: int  # TCP port

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class BodyMode(StrEnum):
    """How a picker gets the body of a request; the values are ext_proc's own.

    With FULL_DUPLEX_STREAMED Envoy keeps no copy of what it has sent and starts no timer: once the picker
    has got the first bytes, a request is lost with it (envoyproxy/envoy #41276). With BUFFERED Envoy still
    has the whole request, waits and then does what the failure mode says. Upstream's pickers answer to a
    streamed body alone.
    """

    BUFFERED = "BUFFERED"
    STREAMED = "FULL_DUPLEX_STREAMED"


@dataclass(frozen=True, slots=True)
class Picker:
    """Who is asked for each request."""

    address: Address  # where its ext_proc service is
    failure_mode: FailureMode = FailureMode.FAIL_OPEN  # what becomes of a request whose pick fails
    body: BodyMode = BodyMode.BUFFERED  # how it gets the body
    tls: bool = False  # whether it serves TLS, with a certificate that it signed itself
    check_s: float | None = None  # how often Envoy connects to it to see whether it is there; None for never


@dataclass(frozen=True, slots=True)
class KnownEngines:
    """Engines that stay the same: one that is not picked for a request gets it in its turn."""

    addresses: Sequence[Address]


@dataclass(frozen=True, slots=True)
class EngineService:
    """Engines that come and go: a picked one is reached at the address that the picker names."""

    address: Address  # the Service that leads a request without a pick to any of them
    tls: bool = False  # whether they serve TLS, with whatever certificate


@dataclass(frozen=True, slots=True)
class Keys:
    """What a client has to show."""

    file: str  # Envoy's filter with the keys, which it reads again when that changes
    requests_per_minute: int | None = None  # of each key; None for no bound


@dataclass(frozen=True, slots=True)
class Traces:
    """Where spans go, and of how many requests."""

    collector: Address  # takes OTLP over gRPC in the clear
    service: str  # the gateway, as spans name it
    sampling_ratio: float  # of requests that begin a trace, 0 to 1


@dataclass(frozen=True, slots=True)
class Entrance:
    """What a gateway needs whose clients are on other machines."""

    heap_bytes: int  # memory from which on it takes no more requests
    paths: Sequence[str]  # what it passes, each with everything below it: with `/` everything
    # file that says where its certificate is (`certificate_resource`); None to serve HTTP
    certificate: str | None = None
    # who reads which model a request asks for; None where there are no others
    model_router: Address | None = None
    # other resources' gateways, by the name that the model router has for them
    others: Mapping[str, Address] = field(default_factory=dict)
    tells_endpoint: bool = False  # whether answers may say which engine they came from
    keys: Keys | None = None  # None to serve whoever comes
    traces: Traces | None = None  # None for no traces


@dataclass(frozen=True, slots=True)
class Gateway:
    """The whole."""

    listen: Address  # where the one URL is
    engines: KnownEngines | EngineService  # what it leads to
    picker: Picker | None = None  # whom it asks for each request; None to give the engines turns
    # what is held of a request at most; a body that has to be there whole is no larger
    held_bytes: int = BODY_BYTES
    entrance: Entrance | None = None  # what it needs beside where it serves others than this machine

    @property
    def body(self) -> BodyMode:
        """How bodies are given to those that are asked."""
        return self.picker.body if self.picker else BodyMode.BUFFERED
