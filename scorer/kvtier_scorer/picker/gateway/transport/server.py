"""A port that serves gRPC with grpcio's server: its threads, its log, and what clients may make it do.

The C core enforces what is a channel argument. tests/picker/transport shows each one at work with raw
frames: a channel argument of a name that the C core does not know is ignored without a word.
"""

import asyncio
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import grpc

ChannelOptions: TypeAlias = tuple[tuple[str, int], ...]

STREAMS: Final = 64
"""At a time on one connection. Envoy opens another connection when they are used up; a gateway that keeps to
one makes requests wait until others have their responses' headers. More are more to reset at once."""
ENDED_STREAMS: Final = 64
"""That have ended on one connection and still have a call here, beside STREAMS: what comes above is refused.
grpcio's default is none, which would cost gateways that use all of STREAMS some requests."""
HEADER_BYTES: Final = 64 << 10
"""Of one call's headers. Envoy sends some 1 KiB with an ext_proc call; Envoy's own limit is 60 KiB."""
AROUND_BYTES: Final = 1 << 18  # of a message, beside a body that comes whole: headers, metadata, attributes
_FIRST_WINDOW_BYTES: Final = 65_535  # HTTP/2's own
BODIES_WINDOW_BYTES: Final = 1 << 18
"""With HTTP/2's own a body of 30,000 tokens waits twice: a tenth of the rate."""
HEALTH_MESSAGE_BYTES: Final = 4096  # of a HealthCheckRequest: the name of a service
CALLS: Final = 16_384
"""At a time, of all connections: some 20 KiB each. Further ones are told RESOURCE_EXHAUSTED."""
CONNECTIONS: Final = 1024
"""A gateway has one for each of its threads, and one more for each STREAMS requests under way."""
HEALTH_CONNECTIONS: Final = 64  # Kubernetes opens one for each probe and closes it
PING_INTERVAL_MS: Final = 5_000
"""Between pings of a client without calls: gateways are told 30 s, say; grpcio's default is 5 minutes."""
PING_STRIKES: Final = 2
"""Pings that may come sooner than that: grpcio's default. The connection is ended by one more."""


@dataclass(frozen=True, slots=True)
class ConnectionTimings:
    """How long a connection may do nothing."""

    # for TLS and the first SETTINGS. With `idle_ms` it is how long those who connect and say nothing keep out
    # a gateway that connects anew.
    handshake_ms: int = 2_000
    idle_ms: int = 3_000  # without a call; a gateway is asked to go, and connects anew when it needs to
    keepalive_ms: int = 60_000  # until a connection on which nothing comes is asked whether it is alive
    keepalive_timeout_ms: int = 20_000


@dataclass(frozen=True, slots=True)
class CallTimings:
    """How long a call of a gateway may take for each of its parts."""

    first_message_s: float = 10.0  # from the begin of a call to its first message, which Envoy sends with it
    # between two messages of a request that has not come whole: an upload that stalls
    next_message_s: float = 60.0
    write_s: float = 30.0  # for a gateway to take one message of an answer
    check_interval_s: float = 1.0
    # that a call waits on a connection that resets its calls: one that is reset meanwhile has cost little
    suspect_delay_s: float = 0.05


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one port: bytes of a message, and connections and calls at a time."""

    message_bytes: int
    connections: int
    calls: int
    window_bytes: int = _FIRST_WINDOW_BYTES  # that a call may send before it is read
    timings: ConnectionTimings = field(default_factory=ConnectionTimings)

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
            # by default windows grow to what a connection could carry: megabytes a stream
            ("grpc.http2.bdp_probe", 0),
            ("grpc.http2.lookahead_bytes", self.window_bytes),
            ("grpc.max_allowed_incoming_connections", self.connections),
            ("grpc.server_handshake_timeout_ms", self.timings.handshake_ms),
            ("grpc.max_connection_idle_ms", self.timings.idle_ms),
            ("grpc.keepalive_time_ms", self.timings.keepalive_ms),
            # grpc.keepalive_timeout_ms ends no connection
            ("grpc.http2.ping_timeout_ms", self.timings.keepalive_timeout_ms),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.min_ping_interval_without_data_ms", PING_INTERVAL_MS),
            ("grpc.http2.max_ping_strikes", PING_STRIKES),
            ("grpc.so_reuseport", 0),  # a port that is taken is refused, not shared
        )


Methods: TypeAlias = Mapping[str, "grpc.RpcMethodHandler[bytes, bytes]"]
"""By path, such as `/grpc.health.v1.Health/Check`."""
Context: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"
"""Of one call, which is given bytes and gives bytes."""
_EVERY_ADDRESS: Final = "[::]"
_TASKS: Final = Path("/proc/self/task")
POOL: Final = frozenset({"event_engine", "lifeguard"})
"""The C core's pool of threads: each frame of a rapid reset is a piece of work for it. The lifeguard starts
further ones, which inherit its niceness. What a well-behaved gateway sends is taken by another thread."""
NICE: Final = 19
"""Some 70 times less of a processor than the loop, where both want it. In a cluster this is among the threads
of one container: containers share by their requests."""
_REPEATS_AFTER_S: Final = (0.1, 1.0, 10.0, 60.0)
"""The pool's threads name themselves once they run: on a busy machine, after the server has started."""
_GRPC_LOG: Final = logging.getLogger("grpc._cython.cygrpc")
_CANNOT_SEND: Final = 'Failed "execute_batch"'


def prefer_event_loop() -> None:
    """Make the pool, its threads that have their names by now, nicer than the rest of this process."""
    for task in _TASKS.iterdir():
        with suppress(OSError):  # it has ended
            if (task / "comm").read_text().strip() in POOL:
                os.setpriority(os.PRIO_PROCESS, int(task.name), NICE)


def _is_told(record: logging.LogRecord) -> bool:
    """Whether a record of grpcio's goes on: a client that is gone while it is answered is a line for debug.

    grpcio writes a traceback where the answer fails before it knows that the client is gone.
    """
    error = record.exc_info[1] if record.exc_info else None
    if not isinstance(error, grpc.aio.InternalError) or not str(error).startswith(_CANNOT_SEND):
        return True
    record.levelno, record.levelname, record.exc_info = logging.DEBUG, "DEBUG", None
    return _GRPC_LOG.isEnabledFor(logging.DEBUG)


class GrpcServer:
    """One listening port, which clients may call; an empty host is every address, of both protocols."""

    def __init__(
        self,
        methods: Methods,
        limits: Limits,
        host: str,
        port: int,
        credentials: grpc.ServerCredentials | None = None,
    ) -> None:
        self.port = port  # the port it listens at, once it does
        self._host = host
        self._credentials = credentials
        _GRPC_LOG.addFilter(_is_told)
        self._server = grpc.aio.server(
            handlers=(_ByPath(methods),), options=limits.options(), maximum_concurrent_rpcs=limits.calls
        )

    async def start(self) -> None:
        """Listen. Raises OSError: the address cannot be had."""
        host = f"[{self._host}]" if ":" in self._host else self._host or _EVERY_ADDRESS
        address = f"{host}:{self.port}"
        try:
            if self._credentials is None:
                self.port = self._server.add_insecure_port(address)
            else:
                self.port = self._server.add_secure_port(address, self._credentials)
        except RuntimeError as error:
            raise OSError(f"{address} is taken, or not an address of this machine") from error
        await self._server.start()
        prefer_event_loop()
        for after_s in _REPEATS_AFTER_S:
            asyncio.get_running_loop().call_later(after_s, prefer_event_loop)

    async def drain(self, grace_s: float) -> None:
        """Take no more clients or calls, ask those there are to go, and close when their calls have ended.

        What is still open after `grace_s` is cut off.
        """
        await self._server.stop(grace_s)


class _ByPath(grpc.GenericRpcHandler):
    def __init__(self, methods: Methods) -> None:
        self._methods = methods

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:  # noqa: ANN401 - as grpcio's stubs have it
        return self._methods.get(handler_call_details.method)
