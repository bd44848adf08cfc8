"""What happened on a stream: a request to pick for, a response, messages to send; and what ends it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from kvtier_scorer.config.contract import TRACE_PARENT
from kvtier_scorer.errors import RefusedRequestError


class ProtocolError(Exception):
    """The gateway sent what does not make sense here; the stream ends with INVALID_ARGUMENT."""


class GatewayMisconfiguredError(RefusedRequestError):
    """The gateway is configured in a way in which prompts cannot be seen. Its operator has to change that."""

    status: ClassVar[int] = 500


@dataclass(frozen=True, slots=True)
class RequestHead:
    """The headers of a request, as far as a picker needs them, by lower-case name."""

    path: str  # with its query; empty where the gateway did not send it
    headers: Mapping[str, str]
    # endpoints that the request may go to, `ip:port` or `ip`; None for every one
    subset: frozenset[str] | None


class RequestReceived(NamedTuple):
    """The request has come whole, with or without a body: call `Exchange.answer` or `Exchange.refuse`."""

    head: RequestHead
    body: bytes | None

    def within(self, trace_parent: str | None) -> "RequestReceived":
        """The same as a part of that span; as it was where there is none."""
        if trace_parent is None:
            return self
        headers = {**self.head.headers, TRACE_PARENT: trace_parent}
        return RequestReceived(RequestHead(self.head.path, headers, self.head.subset), self.body)


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a request."""

    # set on the request, over what its client wrote; with some, the gateway routes it anew
    headers: Mapping[str, str]
    endpoint: str | None = None  # `ip:port` that it goes to; None where somebody else decides
    removed_headers: tuple[str, ...] = ()  # that the endpoint does not get
    body: bytes | None = None  # what the endpoint gets in place of the client's body; None for that one


class ResponseReceived(NamedTuple):
    """A response of an endpoint is on its way to the client; None and 0 where the gateway does not tell."""

    endpoint: str | None
    status: int


class Reply(NamedTuple):
    """Messages to send to the gateway, serialized, in order, and why they refuse the request, if they do."""

    messages: list[bytes]
    refused: RefusedRequestError | None = None


Event = RequestReceived | ResponseReceived | Reply
