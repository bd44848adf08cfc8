"""What clients may make the picker do. The C core enforces what is a channel argument.

tests/picker/transport shows each one at work with raw frames: a channel argument of a name that the C core
does not know is ignored without a word.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

ChannelOptions: TypeAlias = tuple[tuple[str, int], ...]

STREAMS: Final = 64
"""At a time on one connection. Envoy opens another connection when they are used up; a gateway that keeps to
one makes requests wait until others have their responses' headers. More are more to reset at once."""
ENDED_STREAMS: Final = 64
"""That have ended on one connection and still have a call here, beside STREAMS: what comes above is refused.
grpcio's default is none, which would cost gateways that use all of STREAMS some requests."""
HEADER_BYTES: Final = 64 << 10
"""Of one call's headers. Envoy sends some 1 KiB with an ext_proc call; Envoy's own limit is 60 KiB."""
AROUND_BYTES: Final = 1 << 18
"""Of a message, beside a body that comes whole: headers, metadata, attributes."""
HEALTH_MESSAGE_BYTES: Final = 4096
"""Of a HealthCheckRequest: the name of a service."""
CALLS: Final = 16_384
"""At a time, of all connections: some 20 KiB each. Further ones are told RESOURCE_EXHAUSTED."""
CONNECTIONS: Final = 1024
"""A gateway has one for each of its threads, and one more for each STREAMS requests under way."""
HEALTH_CONNECTIONS: Final = 64
"""Kubernetes opens one for each probe and closes it."""
HANDSHAKE_MS: Final = 2_000
"""For TLS and the first SETTINGS of a connection. With IDLE_MS it is how long those who connect and say
nothing keep out a gateway that connects anew."""
IDLE_MS: Final = 3_000
"""For a connection without a call; a gateway is asked to go, and connects anew when it needs to."""
KEEPALIVE_MS: Final = 60_000
"""Until a connection on which nothing comes is asked whether it is alive."""
KEEPALIVE_TIMEOUT_MS: Final = 20_000
"""For its answer."""
PING_INTERVAL_MS: Final = 5_000
"""Between pings of a client without calls: gateways are told 30 s, say; grpcio's default is 5 minutes."""
PING_STRIKES: Final = 2
"""Pings that may come sooner than that: grpcio's default. The connection is ended by one more."""
FIRST_MESSAGE_S: Final = 10.0
"""From the begin of a call to its first message, which Envoy sends with it."""
NEXT_MESSAGE_S: Final = 60.0
"""Between two messages of a request that has not come whole: an upload that stalls."""
WRITE_S: Final = 30.0
"""For a gateway to take one message of an answer."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one port.

    Attributes:
        message_bytes: A longer message ends its call.
        connections: At a time; further ones are closed at once.
        calls: At a time.
    """

    message_bytes: int
    connections: int
    calls: int

    def options(self) -> ChannelOptions:
        """For the C core."""
        return (
            ("grpc.max_concurrent_streams", STREAMS),
            ("grpc.http2.max_deallocating_streams", ENDED_STREAMS),
            # by default some of a crowd are turned away at random, neighbours as well as attackers
            ("grpc.server.max_pending_requests", self.calls),
            ("grpc.server.max_pending_requests_hard_limit", self.calls),
            ("grpc.max_metadata_size", HEADER_BYTES),
            ("grpc.absolute_max_metadata_size", HEADER_BYTES),
            ("grpc.max_receive_message_length", self.message_bytes),
            ("grpc.max_send_message_length", -1),  # ours are in chunks
            ("grpc.max_allowed_incoming_connections", self.connections),
            ("grpc.server_handshake_timeout_ms", HANDSHAKE_MS),
            ("grpc.max_connection_idle_ms", IDLE_MS),
            ("grpc.keepalive_time_ms", KEEPALIVE_MS),
            ("grpc.http2.ping_timeout_ms", KEEPALIVE_TIMEOUT_MS),  # keepalive_timeout_ms ends no connection
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.min_ping_interval_without_data_ms", PING_INTERVAL_MS),
            ("grpc.http2.max_ping_strikes", PING_STRIKES),
            ("grpc.so_reuseport", 0),  # a port that is taken is refused, not shared
        )
