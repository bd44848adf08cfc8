"""What happened on a stream: a request to pick for, a response, messages to send; and what ends it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from kvtier_scorer.errors import RefusedRequestError


class ProtocolError(Exception):
    """The gateway sent what does not make sense here; the stream ends with INVALID_ARGUMENT."""


class GatewayMisconfiguredError(RefusedRequestError):
    """The gateway is configured in a way in which prompts cannot be seen. Its operator has to change that."""

    status: ClassVar[int] = 500


@dataclass(frozen=True, slots=True)
class RequestHead:
    """The headers of a request, as far as a picker needs them, by lower-case name.

    Attributes:
        path: With its query; empty where the gateway did not send it.
        subset: Endpoints that the request may go to, `ip:port` or `ip`; None for every one.
    """

    path: str
    headers: Mapping[str, str]
    subset: frozenset[str] | None


class RequestReceived(NamedTuple):
    """The request has come whole and needs an endpoint: call `Exchange.answer` or `Exchange.refuse`.

    Attributes:
        head: The request's headers.
        body: Its body; None for a request that has none.
    """

    head: RequestHead
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a request: where it goes, and what stands on it.

    Attributes:
        headers: Set on the request, over what its client wrote; with some, the gateway routes it anew.
        endpoint: `ip:port` that it goes to; None where somebody else decides.
    """

    headers: Mapping[str, str]
    endpoint: str | None = None


class ResponseReceived(NamedTuple):
    """A response is on its way to the client.

    Attributes:
        endpoint: `ip:port` that it came from; None where the gateway does not tell.
        status: HTTP status; 0 where the gateway does not tell.
    """

    endpoint: str | None
    status: int


class Reply(NamedTuple):
    """Messages to send to the gateway, in this order.

    Attributes:
        messages: The messages, serialized.
        refused: Why the request is refused by them; None where it is not.
    """

    messages: list[bytes]
    refused: RefusedRequestError | None = None


Event = RequestReceived | ResponseReceived | Reply
