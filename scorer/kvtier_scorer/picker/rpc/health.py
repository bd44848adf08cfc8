"""The health service, grpc.health.v1 (grpc/doc/health-checking.md).

Its messages are one field each, number 1, a string and an enum: what google.protobuf's StringValue and
UInt32Value are too, so these read and write them.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from google.protobuf.message import DecodeError
from google.protobuf.wrappers_pb2 import StringValue, UInt32Value

from kvtier_scorer.picker.rpc.call import Method, Reply
from kvtier_scorer.picker.rpc.status import CallError, Status

_MAX_MESSAGE_BYTES: Final = 4096

LIVENESS: Final = "liveness"
"""Serving as long as the process answers; the other services only when requests can be picked for.
(Gateway API inference extension, docs/proposals/004-endpoint-picker-protocol, Health Check Services.)"""
READY_SERVICES: Final = (
    "",
    "readiness",
    "inference-extension",
    "envoy.service.ext_proc.v3.ExternalProcessor",
)


class Serving(IntEnum):
    """HealthCheckResponse.ServingStatus."""

    SERVING = 1
    NOT_SERVING = 2
    SERVICE_UNKNOWN = 3


class Health:
    """What the probes are told. Not ready until `set_ready`."""

    def __init__(self) -> None:
        self._ready = False
        self._watches: dict[Reply, str] = {}

    @property
    def ready(self) -> bool:
        """Whether requests can be picked for."""
        return self._ready

    def set_ready(self, ready: bool) -> None:
        """Change it; those who watch are told."""
        if ready == self._ready:
            return
        self._ready = ready
        for reply, service in tuple(self._watches.items()):
            if service != LIVENESS:
                reply.send([_answer(self.serving(service))])

    def serving(self, service: str) -> Serving:
        """Status of a service."""
        if service == LIVENESS:
            return Serving.SERVING
        if service in READY_SERVICES:
            return Serving.SERVING if self._ready else Serving.NOT_SERVING
        return Serving.SERVICE_UNKNOWN

    def methods(self) -> Mapping[bytes, Method]:
        """What a server serves."""
        return {
            b"/grpc.health.v1.Health/Check": Method(lambda reply: _Check(self, reply), _MAX_MESSAGE_BYTES),
            b"/grpc.health.v1.Health/Watch": Method(
                lambda reply: _Watch(self, reply), _MAX_MESSAGE_BYTES, lasting=True
            ),
        }

    def watch(self, reply: Reply, service: str) -> None:
        """Tell a watcher how a service is, now and whenever that changes."""
        self._watches[reply] = service
        reply.send([_answer(self.serving(service))])

    def unwatch(self, reply: Reply) -> None:
        """Tell it nothing more."""
        self._watches.pop(reply, None)


class _Check:
    def __init__(self, health: Health, reply: Reply) -> None:
        self._health = health
        self._reply = reply

    def message(self, message: bytes) -> None:
        service = _service(message)
        serving = self._health.serving(service)
        if serving is Serving.SERVICE_UNKNOWN:
            raise CallError(Status.NOT_FOUND, f"no service {service!r}")
        self._reply.send([_answer(serving)])
        self._reply.finish()

    def oversized(self, limit_bytes: int) -> bool:
        del limit_bytes
        return False

    def half_closed(self) -> None:
        # nothing if the call has been answered
        self._reply.finish(Status.INVALID_ARGUMENT, "Check needs a message")

    def gone(self) -> None:
        pass


class _Watch:
    def __init__(self, health: Health, reply: Reply) -> None:
        self._health = health
        self._reply = reply

    def message(self, message: bytes) -> None:
        self._health.watch(self._reply, _service(message))

    def oversized(self, limit_bytes: int) -> bool:
        del limit_bytes
        return False

    def half_closed(self) -> None:
        pass  # the client has said all that it has to say, and goes on listening

    def gone(self) -> None:
        self._health.unwatch(self._reply)


def _service(message: bytes) -> str:
    try:
        return str(StringValue.FromString(message).value)
    except DecodeError:
        raise CallError(Status.INVALID_ARGUMENT, "not a HealthCheckRequest") from None


def _answer(serving: Serving) -> bytes:
    return bytes(UInt32Value(value=int(serving)).SerializeToString())
