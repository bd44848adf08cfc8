"""The state of one ext_proc stream, which is about one HTTP request. Messages in, events out, no I/O.

The request's headers, body and trailers come as messages and are answered in that order, as are the
response's. With FULL_DUPLEX_STREAMED bodies, which the endpoint picker protocol asks for, the answer to the
headers waits for the end of the body. A response may come at any time, when the gateway answers by itself.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto
from itertools import chain
from typing import ClassVar, Final

from envoy.extensions.filters.http.ext_proc.v3.processing_mode_pb2 import ProcessingMode
from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest
from google.protobuf.message import DecodeError

from kvtier_scorer.errors import RefusedRequestError
from kvtier_scorer.picker.gateway.body_memory import BodyBuffer, BodyShare
from kvtier_scorer.picker.gateway.protocol import events, messages

_NONE: Final = ProcessingMode.NONE
_BUFFERED: Final = ProcessingMode.BUFFERED
_FULL_DUPLEX: Final = ProcessingMode.FULL_DUPLEX_STREAMED


class _Request(Enum):
    """Where the request is."""

    EXPECTED = auto()
    BODY = auto()
    ASKED = auto()  # the question has not been answered yet
    ANSWERED = auto()  # only trailers may follow, if the body was buffered


class _Response(Enum):
    """Where the response is."""

    EXPECTED = auto()
    BODY = auto()


class Exchange:
    """One stream.

    A body that finds no share of the memory is refused while it comes in. `upload` is of what may be on its
    way at a time, in the memory of the gateway or of the transport: as many bytes as the client announces, or
    as a body may have. With `tells_endpoint` a response tells its client which endpoint it came from.
    """

    __slots__ = (
        "_body", "_endpoint", "_has_body", "_head", "_received", "_request", "_request_mode", "_response",
        "_response_mode", "_share", "_tells_endpoint", "_trailers", "_upload", "finished",
    )  # fmt: skip

    def __init__(self, share: BodyShare, upload: BodyShare, *, tells_endpoint: bool = False) -> None:
        self.finished = False  # the stream is to be ended; nothing that comes on it matters any more
        self._share = share
        self._upload = upload
        self._tells_endpoint = tells_endpoint
        self._request = _Request.EXPECTED
        self._response = _Response.EXPECTED
        # gateways that do not tell are older than this field; for pickers they use this mode
        self._request_mode = self._response_mode = _FULL_DUPLEX
        self._head: events.RequestHead | None = None
        self._has_body = False
        self._received = BodyBuffer()
        self._body = b""
        self._trailers = False
        self._endpoint: str | None = None

    @property
    def picking(self) -> bool:
        """Whether the request waits for this stream: ending it now would lose the request."""
        return not self.finished and self._request is not _Request.ANSWERED

    @property
    def responding(self) -> bool:
        """Whether ending this stream now could cut a response off.

        Envoy gives parts of a FULL_DUPLEX_STREAMED body away as they come, unasked, and keeps no copy: they
        may be on their way already. In other modes it keeps what has not been answered.
        """
        on_its_way = self._response_mode == _FULL_DUPLEX
        return not self.finished and (on_its_way or self._response is _Response.BODY)

    def receive(self, message: bytes) -> list[events.Event]:
        """What a message of the gateway means. Raises ProtocolError: it is none, or comes out of order."""
        if self.finished:
            return []
        try:
            request = ProcessingRequest.FromString(message)
        except DecodeError:
            raise events.ProtocolError("not a ProcessingRequest") from None
        take = self._BY_KIND.get(request.WhichOneof("request"))
        if take is None:
            raise events.ProtocolError("a message of a kind that is not known")
        return take(self, request)

    def answer(self, decision: events.Decision) -> Iterable[bytes]:
        """Let the request go where it was decided. Returns the messages for the gateway.

        There are none if the gateway has answered by itself meanwhile.
        """
        if self.finished or self._response is not _Response.EXPECTED:
            return []
        self._endpoint = decision.endpoint
        body, self._body = self._body, b""
        if decision.body is not None:
            body = decision.body
        self._request = _Request.ANSWERED
        if not self._has_body:
            return [messages.request_headers(decision, None)]
        if self._request_mode == _BUFFERED:
            return [messages.buffered_body(decision)]
        return chain(
            [messages.request_headers(decision, len(body))],
            messages.request_body(body, end_of_stream=not self._trailers),
            [messages.PASS_REQUEST_TRAILERS] if self._trailers else [],
        )

    def refuse(self, refused: RefusedRequestError) -> list[bytes]:
        """Answer the client in place of an endpoint; the stream is finished then."""
        if self.finished:
            return []
        self.finished = True
        self._body = b""
        self._received = BodyBuffer()
        self._share.release()
        self._upload.release()
        return [messages.refusal(refused)]

    def _on_request_headers(self, request: ProcessingRequest) -> list[events.Event]:
        if self._request is not _Request.EXPECTED:
            raise events.ProtocolError("request headers come twice")
        head = self._head = messages.request_head(request)
        if request.HasField("protocol_config"):
            self._request_mode = request.protocol_config.request_body_mode
            self._response_mode = request.protocol_config.response_body_mode
        if request.request_headers.end_of_stream:
            self._request = _Request.ASKED
            return [events.RequestReceived(head, None)]
        self._request = _Request.BODY
        self._has_body = True
        if self._request_mode not in {_BUFFERED, _FULL_DUPLEX}:
            problem = (
                f"the gateway's request_body_mode is {_mode_name(self._request_mode)}; "
                "endpoint pickers need FULL_DUPLEX_STREAMED"
            )
            return self._refusal(events.GatewayMisconfiguredError(problem))
        announced_bytes = messages.content_length(head)
        try:
            self._share.check_announced(announced_bytes)
            self._upload.take(announced_bytes or self._upload.body_bytes)
        except RefusedRequestError as error:
            return self._refusal(error)
        # Envoy sends a buffered body only after this
        return [events.Reply([messages.PASS_REQUEST_HEADERS])] if self._request_mode == _BUFFERED else []

    def _on_request_body(self, request: ProcessingRequest) -> list[events.Event]:
        if self._request is not _Request.BODY:
            raise events.ProtocolError("a request body where none can be")
        body, end_of_stream = request.request_body.body, request.request_body.end_of_stream
        try:
            self._share.take(len(body))
        except RefusedRequestError as error:
            return self._refusal(error)
        self._received.add(body)
        # a buffered body comes whole; what follows it is trailers
        return self._ask() if end_of_stream or self._request_mode == _BUFFERED else []

    def _on_request_trailers(self, _: ProcessingRequest) -> list[events.Event]:
        if self._request is _Request.ANSWERED and self._request_mode == _BUFFERED:
            return [events.Reply([messages.PASS_REQUEST_TRAILERS])]
        if self._request is not _Request.BODY:
            raise events.ProtocolError("request trailers where none can be")
        self._trailers = True
        return self._ask()

    def _ask(self) -> list[events.Event]:
        assert self._head is not None  # noqa: S101 - no body without headers
        self._request = _Request.ASKED
        self._body = self._received.take()
        return [events.RequestReceived(self._head, self._body)]

    def _on_response_headers(self, request: ProcessingRequest) -> list[events.Event]:
        if self._request is _Request.EXPECTED or self._response is not _Response.EXPECTED:
            raise events.ProtocolError("response headers where none can be")
        self._response = _Response.BODY
        response = messages.response_received(request)
        ended = request.response_headers.end_of_stream
        # without a response body, Envoy 1.40 waits for nothing more
        self.finished = ended or self._response_mode == _NONE
        served_by = (response.endpoint or self._endpoint) if self._tells_endpoint else None
        return [response, events.Reply([messages.response_headers(served_by)])]

    def _on_response_body(self, request: ProcessingRequest) -> list[events.Event]:
        if self._response is not _Response.BODY:
            raise events.ProtocolError("a response body before its headers")
        body, end_of_stream = request.response_body.body, request.response_body.end_of_stream
        self.finished = end_of_stream
        if self._response_mode == _FULL_DUPLEX:
            return [events.Reply(list(messages.response_body(body, end_of_stream=end_of_stream)))]
        return [events.Reply([messages.PASS_RESPONSE_BODY])]

    def _on_response_trailers(self, _: ProcessingRequest) -> list[events.Event]:
        if self._response is not _Response.BODY:
            raise events.ProtocolError("response trailers before response headers")
        self.finished = True
        return [events.Reply([messages.PASS_RESPONSE_TRAILERS])]

    def _refusal(self, refused: RefusedRequestError) -> list[events.Event]:
        return [events.Reply(self.refuse(refused), refused)]

    _BY_KIND: ClassVar[Mapping[str | None, Callable[["Exchange", ProcessingRequest], list[events.Event]]]] = {
        "request_headers": _on_request_headers,
        "request_body": _on_request_body,
        "request_trailers": _on_request_trailers,
        "response_headers": _on_response_headers,
        "response_body": _on_response_body,
        "response_trailers": _on_response_trailers,
    }


def _mode_name(mode: int) -> str:
    """As the configuration of a gateway has it; a newer gateway may have modes that are not known here."""
    known: dict[int, str] = {number: name for name, number in ProcessingMode.BodySendMode.items()}
    return known.get(mode, str(mode))
