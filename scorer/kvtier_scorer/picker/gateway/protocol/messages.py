"""Messages as bytes: reads the fields of a gateway's that a picker needs, and writes the picker's answers."""

from collections.abc import Iterator
from typing import Any, Final

import orjson
from envoy.config.core.v3.base_pb2 import HeaderValueOption
from envoy.service.ext_proc.v3.external_processor_pb2 import (
    CommonResponse,
    HttpHeaders,
    ProcessingRequest,
    ProcessingResponse,
)
from google.protobuf.struct_pb2 import Value

from kvtier_common.hints import HEADERS as HINT_HEADERS
from kvtier_scorer.config import contract
from kvtier_scorer.errors import BadFieldError, RefusedRequestError
from kvtier_scorer.picker.gateway.protocol.events import Decision, RequestHead, ResponseReceived

_CONTENT_LENGTH: Final = "content-length"
_STATUS_DIGITS: Final = 3
_MOST_DIGITS: Final = 18
_JOINED_HEADERS: Final = frozenset({*HINT_HEADERS, contract.CLIENT})
"""Those of which several must not pass for one."""
_REQUEST_HEADERS: Final = frozenset(
    {
        ":path",
        _CONTENT_LENGTH,
        contract.PRIORITY,
        contract.REQUEST_ID,
        contract.TRACE_PARENT,
        *_JOINED_HEADERS,
    }
)
_RESPONSE_HEADERS: Final = frozenset({":status", contract.SERVED})
_TYPES: Final = {
    400: "invalid_request_error",
    404: "invalid_request_error",
    413: "invalid_request_error",
    429: "rate_limit_error",
    503: "service_unavailable_error",
}
CHUNK_BYTES: Final = 62_000
"""Body in one message: 64,000 bytes are the most that Envoy takes, less room for the message around it
(gateway-api-inference-extension v1.5.0, pkg/common/envoy, bodyByteLimit)."""
_OVERWRITE: Final = HeaderValueOption.OVERWRITE_IF_EXISTS_OR_ADD


def request_head(request: ProcessingRequest) -> RequestHead:
    """What the request's headers and metadata say."""
    headers = _headers(request.request_headers, _REQUEST_HEADERS)
    return RequestHead(headers.pop(":path", ""), headers, _subset(request))


def response_received(request: ProcessingRequest) -> ResponseReceived:
    """Which endpoint the response came from: by metadata, else by header."""
    headers = _headers(request.response_headers, _RESPONSE_HEADERS)
    endpoint = headers.get(contract.SERVED)
    served = _metadata(request, contract.METADATA_NAMESPACE, contract.SERVED)
    if served is not None and served.WhichOneof("kind") == "string_value":
        endpoint = served.string_value
    status = headers.get(":status", "")
    return ResponseReceived(endpoint or None, _whole_number(status) if len(status) == _STATUS_DIGITS else 0)


def content_length(head: RequestHead) -> int:
    """Bytes of the body as the client announced them; 0 where it did not."""
    return _whole_number(head.headers.get(_CONTENT_LENGTH, ""))


def _whole_number(text: str) -> int:
    """Digits as a number; 0 for anything else, and for more of them than any length or status has."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else 0


def _headers(message: HttpHeaders, wanted: frozenset[str]) -> dict[str, str]:
    """The wanted headers. Several hints of one name are joined as HTTP does; of others the last counts."""
    values: dict[str, str] = {}
    for header in message.headers.headers:
        name = header.key
        if name in wanted:
            raw = header.raw_value
            value = raw.decode(errors="replace") if raw else header.value
            values[name] = f"{values[name]},{value}" if name in values and name in _JOINED_HEADERS else value
    return values


def _subset(request: ProcessingRequest) -> frozenset[str] | None:
    """The endpoints of the hint, a list or a string with commas; one that is neither allows none."""
    hint = _metadata(request, contract.SUBSET_NAMESPACE, contract.SUBSET)
    return None if hint is None else frozenset(_endpoints(hint))


def _endpoints(hint: Value) -> Iterator[str]:
    kind = hint.WhichOneof("kind")
    if kind == "string_value":
        for endpoint in hint.string_value.split(","):
            if stripped := endpoint.strip():
                yield stripped
    elif kind == "list_value":
        for item in hint.list_value.values:
            if item.WhichOneof("kind") == "string_value":
                yield from _endpoints(item)


def _metadata(request: ProcessingRequest, namespace: str, key: str) -> Any:  # noqa: ANN401 - a Value or None
    if not request.HasField("metadata_context"):
        return None
    by_namespace = request.metadata_context.filter_metadata
    # reading an entry of a protobuf map that is not there would make it
    if namespace not in by_namespace:
        return None
    fields = by_namespace[namespace].fields
    return fields.get(key)


def error_body(refused: RefusedRequestError) -> bytes:
    """The JSON body of a refusal."""
    return orjson.dumps(
        {
            "error": {
                "message": str(refused),
                "type": _TYPES.get(refused.status, "server_error"),
                "param": refused.field if isinstance(refused, BadFieldError) else None,
                "code": refused.status,
            }
        }
    )


def request_headers(decision: Decision, body_bytes: int | None) -> bytes:
    """Answer to request headers: what stands on the request, and where it goes.

    The body's length is set because it is sent on in chunks, so that Envoy drops the client's header; None
    where there is no body. Gateways that forbid to set it ignore this.
    """
    response = ProcessingResponse()
    response.request_headers.SetInParent()
    _decide(response, response.request_headers.response, decision)
    if body_bytes is not None:
        _set_header(response.request_headers.response, _CONTENT_LENGTH, str(body_bytes))
    return bytes(response.SerializeToString())


def buffered_body(decision: Decision) -> bytes:
    """Answer to a buffered body, whose headers have been let through: the same, and a body that changed."""
    response = ProcessingResponse()
    response.request_body.SetInParent()
    common = response.request_body.response
    _decide(response, common, decision)
    if decision.body is not None:
        common.body_mutation.body = decision.body
        # Envoy refuses a body of another length than its headers say
        _set_header(common, _CONTENT_LENGTH, str(len(decision.body)))
    return bytes(response.SerializeToString())


def request_body(body: bytes, *, end_of_stream: bool) -> Iterator[bytes]:
    """The request's body in chunks; the last one ends it if `end_of_stream`.

    Each is made when it is asked for: a long body twice in memory, and all of it at once, would be felt.
    """
    return _chunks("request_body", body, end_of_stream=end_of_stream)


def response_headers(endpoint: str | None) -> bytes:
    """Answer to response headers: lets them through, and tells the client which endpoint answered, if any."""
    response = ProcessingResponse()
    response.response_headers.SetInParent()
    if endpoint is not None:
        _set_header(response.response_headers.response, contract.SERVED, endpoint)
    return bytes(response.SerializeToString())


def response_body(body: bytes, *, end_of_stream: bool) -> Iterator[bytes]:
    """The response's body as it was, in chunks."""
    return _chunks("response_body", body, end_of_stream=end_of_stream)


def refusal(refused: RefusedRequestError) -> bytes:
    """An answer of the picker's own to the client."""
    response = ProcessingResponse()
    immediate = response.immediate_response
    immediate.status.code = refused.status
    immediate.body = error_body(refused)
    immediate.details = f"kvtier_picker_{refused.status}"
    headers = {"content-type": "application/json"}
    if refused.retry_after_s is not None:
        headers["retry-after"] = str(refused.retry_after_s)
    for name, value in headers.items():
        option = immediate.headers.set_headers.add(append_action=_OVERWRITE)
        option.header.key = name
        option.header.raw_value = value.encode()
    return bytes(response.SerializeToString())


def _chunks(kind: str, body: bytes, *, end_of_stream: bool) -> Iterator[bytes]:
    for start in range(0, max(len(body), 1), CHUNK_BYTES):
        response = ProcessingResponse()
        streamed = getattr(response, kind).response.body_mutation.streamed_response
        streamed.body = body[start : start + CHUNK_BYTES]
        streamed.end_of_stream = end_of_stream and start + CHUNK_BYTES >= len(body)
        yield bytes(response.SerializeToString())


def _decide(response: ProcessingResponse, common: CommonResponse, decision: Decision) -> None:
    for name, value in decision.headers.items():
        common.clear_route_cache = True
        _set_header(common, name, value)
    common.header_mutation.remove_headers.extend(decision.removed_headers)
    if decision.endpoint is not None:
        metadata = response.dynamic_metadata.fields[contract.METADATA_NAMESPACE].struct_value
        metadata.fields[contract.DESTINATION].string_value = decision.endpoint


def _set_header(common: CommonResponse, name: str, value: str) -> None:
    # a client may have sent such a header itself
    option = common.header_mutation.set_headers.add(append_action=_OVERWRITE)
    option.header.key = name
    option.header.raw_value = value.encode()


def _pass_on(kind: str) -> bytes:
    response = ProcessingResponse()
    getattr(response, kind).SetInParent()
    return bytes(response.SerializeToString())


PASS_REQUEST_HEADERS: Final = _pass_on("request_headers")
PASS_REQUEST_TRAILERS: Final = _pass_on("request_trailers")
PASS_RESPONSE_BODY: Final = _pass_on("response_body")
PASS_RESPONSE_TRAILERS: Final = _pass_on("response_trailers")
