"""Reads the fields of a gateway's messages that a picker needs."""

from collections.abc import Iterator
from typing import Any, Final

from envoy.service.ext_proc.v3.external_processor_pb2 import HttpHeaders, ProcessingRequest
from google.protobuf.struct_pb2 import Value

from kvtier_scorer.picker.gateway.protocol.events import RequestHead, ResponseReceived
from kvtier_scorer.picker.gateway.protocol.names import (
    METADATA_NAMESPACE,
    PRIORITY,
    REQUEST_ID,
    SERVED,
    SUBSET,
    SUBSET_NAMESPACE,
)

_CONTENT_LENGTH: Final = "content-length"
_STATUS_DIGITS: Final = 3
_MOST_DIGITS: Final = 18
_REQUEST_HEADERS: Final = frozenset({":path", _CONTENT_LENGTH, PRIORITY, REQUEST_ID})
_RESPONSE_HEADERS: Final = frozenset({":status", SERVED})


def request_head(request: ProcessingRequest) -> RequestHead:
    """What the request's headers and metadata say."""
    headers = _headers(request.request_headers, _REQUEST_HEADERS)
    return RequestHead(headers.pop(":path", ""), headers, _subset(request))


def response_received(request: ProcessingRequest) -> ResponseReceived:
    """Which endpoint the response came from: by metadata, else by header."""
    headers = _headers(request.response_headers, _RESPONSE_HEADERS)
    endpoint = headers.get(SERVED)
    served = _metadata(request, METADATA_NAMESPACE, SERVED)
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
    """The wanted headers. Of one that is repeated the last counts; gateways join them before."""
    found = {}
    for header in message.headers.headers:
        name = header.key
        if name in wanted:
            raw = header.raw_value
            found[name] = raw.decode(errors="replace") if raw else header.value
    return found


def _subset(request: ProcessingRequest) -> frozenset[str] | None:
    """The endpoints of the hint, a list or a string with commas; one that is neither allows none."""
    hint = _metadata(request, SUBSET_NAMESPACE, SUBSET)
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
