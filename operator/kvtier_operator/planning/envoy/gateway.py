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
    """Where something listens.

    Attributes:
        host: An IP address, or a name that DNS knows.
        port: TCP port.
    """

    host: str
    port: int

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
    """Who is asked for each request.

    Attributes:
        address: Where its ext_proc service is.
        failure_mode: What becomes of a request whose pick fails.
        body: How it gets the body.
        tls: Whether it serves TLS, with a certificate that it signed itself.
        check_s: How often Envoy connects to it to see whether it is there; None for never.
    """

    address: Address
    failure_mode: FailureMode = FailureMode.FAIL_OPEN
    body: BodyMode = BodyMode.BUFFERED
    tls: bool = False
    check_s: float | None = None


@dataclass(frozen=True, slots=True)
class KnownEngines:
    """Engines that stay the same: one that is not picked for a request gets it in its turn."""

    addresses: Sequence[Address]


@dataclass(frozen=True, slots=True)
class EngineService:
    """Engines that come and go: a picked one is reached at the address that the picker names.

    Attributes:
        address: The Service that leads a request without a pick to any of them.
        tls: Whether they serve TLS, with whatever certificate.
    """

    address: Address
    tls: bool = False


@dataclass(frozen=True, slots=True)
class Entrance:
    """What a gateway needs whose clients are on other machines.

    Attributes:
        heap_bytes: Memory from which on it takes no more requests.
        paths: What it passes, each with everything below it: with `/` everything.
        certificate: File that says where its certificate is (`certificate_resource`); None to serve HTTP.
        model_router: Who reads which model a request asks for; None where there are no others.
        others: Other resources' gateways, by the name that the model router has for them.
        tells_endpoint: Whether answers may say which engine they came from.
    """

    heap_bytes: int
    paths: Sequence[str]
    certificate: str | None = None
    model_router: Address | None = None
    others: Mapping[str, Address] = field(default_factory=dict)
    tells_endpoint: bool = False


@dataclass(frozen=True, slots=True)
class Gateway:
    """The whole.

    Attributes:
        listen: Where the one URL is.
        engines: What it leads to.
        picker: Whom it asks for each request; None to give the engines turns.
        held_bytes: What is held of a request at most; a body that has to be there whole is no larger.
        entrance: What it needs beside where it serves others than this machine.
    """

    listen: Address
    engines: KnownEngines | EngineService
    picker: Picker | None = None
    held_bytes: int = BODY_BYTES
    entrance: Entrance | None = None

    @property
    def body(self) -> BodyMode:
        """How bodies are given to those that are asked."""
        return self.picker.body if self.picker else BodyMode.BUFFERED
