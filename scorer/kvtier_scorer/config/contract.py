"""What the planner and kvtier's own picker have to agree on: headers, ports, memory for bodies and events."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

EVENTS_PORT: Final = 5557
"""Of the first data-parallel rank; further ranks take the next ones. vLLM's default (config/kv_events.py)."""
REPLAY_PORT: Final = 5657
"""Where events that were missed can be asked for again, counted likewise: a hundred ranks further on."""
BYTES_PER_HELD_BLOCK: Final = 160
"""Of what the picker keeps for each block that a pod's events tell of: a number of 64 bits, its place in a
table, a chain of hashes (153 measured)."""
EVENTS_BYTES: Final = 128 << 20
"""What the picker holds of messages at most: large ones as they come, one of them decoded, replays."""

DESTINATION: Final = "x-gateway-destination-endpoint"
"""Header, and key of the metadata, with the picked endpoint."""
METADATA_NAMESPACE: Final = "envoy.lb"
SERVED: Final = "x-gateway-destination-endpoint-served"
"""Metadata, or a header where a gateway has no metadata, with the endpoint that answered."""
SUBSET_NAMESPACE: Final = "envoy.lb.subset_hint"
SUBSET: Final = "x-gateway-destination-endpoint-subset"
PRIORITY: Final = "x-kvtier-priority"
"""Header of a request: a number below 0 says that it may be shed while every pod is saturated. This picker's
own. With a word, low, normal or high, the same header is a hint about the prompt's blocks."""
REQUEST_ID: Final = "x-request-id"
TRACE_PARENT: Final = "traceparent"
"""Header with the trace that a request is part of (W3C Trace Context)."""
RESOURCE: Final = "x-kvtier-resource"
"""Header of a request whose model another KVCacheTier serves: its name, by which kvtier's gateway routes."""
CLIENT: Final = "x-kvtier-client"
"""Header of a request that showed a key to kvtier's gateway: the name of the key's entry in the Secret."""
KEYS_FILTER: Final = "envoy.filters.http.api_key_auth"
"""Envoy's filter, and what it asks its file for."""

_MIB: Final = 1 << 20
_BYTES_PER_TOKEN: Final = 16
"""Of a body: a token is 4 bytes of text in English, 9 where a client writes another script as `\\u4f60`."""
_MOST_BYTES: Final = 32 * _MIB  # what a longer model's bodies get unless somebody asks for more
_AT_A_TIME: Final = 4  # of the largest bodies
_COPIES: Final = 3  # of a body that is held: itself, the prompt read from it, the messages that send it on
READING_BYTES: Final = 128 * _MIB
"""What one body becomes as objects at worst. One is read at a time; picker/gateway/bodies/json_size.py bounds
how many objects that makes: up to 45 MiB of them as measured, and what the allocator keeps."""
_WIDEST: Final = 4  # Python's bytes for a character of a text that has a single one beyond the basic plane

_UPLOADS_BYTES: Final = 256 * _MIB
"""Of bodies on their way: some 500 clients at a time who send 500 KB slowly."""

DEFAULT_MAX_BODY_BYTES: Final = 8 * _MIB
DEFAULT_TOTAL_BODY_BYTES: Final = 64 * _MIB


class HintPolicy(StrEnum):
    """Whose hints about a prompt's blocks reach the engine."""

    ACCEPT = "Accept"  # those of bodies and of headers; a header wins over the same hint of the body
    HEADERS = "Headers"  # those of headers alone, which a gateway can set or remove
    REFUSE = "Refuse"  # nobody's; `nostore` alone counts under every policy


class ShareFrom(StrEnum):
    """Who says whose share of the tiers a prompt's blocks are."""

    HEADER = "Header"  # a hint like the others
    CLIENT = "Client"  # the name of the client's API key, or nobody; what clients say does not count


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """Bounds of bodies: of one, and of all at a time."""

    max_bytes: int
    total_bytes: int

    @property
    def worst_memory_bytes(self) -> int:
        """Memory of the picker for bodies, whatever clients send, beside what its transport holds."""
        return _COPIES * self.total_bytes + (_WIDEST + 1) * self.max_bytes + READING_BYTES


def uploads_bytes(max_bytes: int) -> int:
    """What may be on its way of all bodies, in the memory of gateways or of the transport.

    It is counted by what clients announce, and whoever takes most for longest is refused.
    """
    return max(_AT_A_TIME * max_bytes, _UPLOADS_BYTES)


def body_limits(max_prompt_tokens: int | None, asked_bytes: int | None) -> BodyLimits:
    """The bounds for a model by its longest prompt, unless somebody asks for a largest body."""
    follows = min((max_prompt_tokens or 0) * _BYTES_PER_TOKEN, _MOST_BYTES)
    max_bytes = max(follows, DEFAULT_MAX_BODY_BYTES) if asked_bytes is None else asked_bytes
    return BodyLimits(max_bytes, max(_AT_A_TIME * max_bytes, DEFAULT_TOTAL_BODY_BYTES))
