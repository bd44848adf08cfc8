"""Messages as a gateway sends them, and what a picker's answers say."""

from collections.abc import Mapping
from typing import Final

from envoy.extensions.filters.http.ext_proc.v3.processing_mode_pb2 import ProcessingMode
from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest, ProcessingResponse
from google.protobuf.message import Message

from kvtier_scorer.config.contract import (
    DESTINATION,
    METADATA_NAMESPACE,
    SUBSET,
    SUBSET_NAMESPACE,
)

PATH: Final = "/v1/completions"


def request_headers(
    headers: Mapping[str, str] | None = None,
    *,
    end_of_stream: bool = False,
    mode: int | None = ProcessingMode.FULL_DUPLEX_STREAMED,
    response_mode: int = ProcessingMode.FULL_DUPLEX_STREAMED,
    subset: list[str] | str | None = None,
) -> bytes:
    """Request headers; `mode` None is a gateway that does not tell its modes."""
    message = ProcessingRequest()
    _set_headers(message.request_headers, {":path": PATH, **(headers or {})})
    message.request_headers.end_of_stream = end_of_stream
    if mode is not None:
        message.protocol_config.request_body_mode = mode
        message.protocol_config.response_body_mode = response_mode
    if subset is not None:
        hint = message.metadata_context.filter_metadata[SUBSET_NAMESPACE].fields[SUBSET]
        if isinstance(subset, str):
            hint.string_value = subset
        else:
            for each in subset:
                hint.list_value.values.add().string_value = each
    return _bytes(message)


def request_body(body: bytes, *, end_of_stream: bool = True) -> bytes:
    """A part of a request's body."""
    message = ProcessingRequest()
    message.request_body.body = body
    message.request_body.end_of_stream = end_of_stream
    return _bytes(message)


def request_trailers() -> bytes:
    """A request's trailers."""
    message = ProcessingRequest()
    message.request_trailers.SetInParent()
    return _bytes(message)


def response_headers(
    headers: Mapping[str, str] | None = None,
    *,
    end_of_stream: bool = False,
    metadata: Mapping[str, str] | None = None,
) -> bytes:
    """Response headers; `metadata` in the gateway's namespace."""
    message = ProcessingRequest()
    _set_headers(message.response_headers, {":status": "200", **(headers or {})})
    message.response_headers.end_of_stream = end_of_stream
    for name, value in (metadata or {}).items():
        fields = message.metadata_context.filter_metadata[METADATA_NAMESPACE].fields
        fields[name].string_value = value
    return _bytes(message)


def response_body(body: bytes, *, end_of_stream: bool = True) -> bytes:
    """A part of a response's body."""
    message = ProcessingRequest()
    message.response_body.body = body
    message.response_body.end_of_stream = end_of_stream
    return _bytes(message)


def response_trailers() -> bytes:
    """A response's trailers."""
    message = ProcessingRequest()
    message.response_trailers.SetInParent()
    return _bytes(message)


def answer(message: bytes) -> ProcessingResponse:
    """An answer of the picker."""
    return ProcessingResponse.FromString(message)


def kinds(messages: list[bytes]) -> list[str]:
    """Which answers these are."""
    return [answer(message).WhichOneof("response") or "" for message in messages]


def headers_of(message: bytes) -> dict[str, str]:
    """Headers that an answer sets, of whatever kind it is."""
    told = answer(message)
    part = getattr(told, str(told.WhichOneof("response")))
    mutation = part.headers if told.HasField("immediate_response") else part.response.header_mutation
    return {option.header.key: option.header.raw_value.decode() for option in mutation.set_headers}


def destination_of(message: bytes) -> str:
    """Where an answer sends the request, which header and metadata have to agree on."""
    told = answer(message)
    metadata = told.dynamic_metadata.fields[METADATA_NAMESPACE].struct_value.fields[DESTINATION].string_value
    header = headers_of(message)[DESTINATION]
    assert header == metadata
    return header


def _set_headers(message: Message, headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        header = message.headers.headers.add()  # type: ignore[attr-defined] # HttpHeaders
        header.key, header.raw_value = name, value.encode()


def _bytes(message: Message) -> bytes:
    return bytes(message.SerializeToString())
