"""The health service, grpc.health.v1 (grpc/doc/health-checking.md).

Its messages are one field each, number 1, a string and an enum: what google.protobuf's StringValue and
UInt32Value are too, so these read and write them.
"""

import asyncio
from enum import IntEnum
from typing import Final

import grpc
from google.protobuf.message import DecodeError
from google.protobuf.wrappers_pb2 import StringValue, UInt32Value

from kvtier_scorer.picker.gateway.transport.server import HEALTH_MESSAGE_BYTES, Context, Methods

_NAME_CHARACTERS: Final = 100  # of a name that a client sent, in what it is told

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
        self._ended = False
        self._changed = asyncio.Event()

    @property
    def ready(self) -> bool:
        """Whether requests can be picked for."""
        return self._ready

    def set_ready(self, ready: bool) -> None:
        """Change it; those who watch are told."""
        if ready != self._ready:
            self._ready = ready
            self._tell()

    def end(self) -> None:
        """End all watches, which nothing else would: the server is stopping."""
        self._ended = True
        self._tell()

    def serving(self, service: str) -> Serving:
        """Status of a service."""
        if service == LIVENESS:
            return Serving.SERVING
        if service in READY_SERVICES:
            return Serving.SERVING if self._ready else Serving.NOT_SERVING
        return Serving.SERVICE_UNKNOWN

    def methods(self) -> Methods:
        """What a server serves."""
        return {
            "/grpc.health.v1.Health/Check": grpc.unary_unary_rpc_method_handler(self._check),
            "/grpc.health.v1.Health/Watch": grpc.unary_stream_rpc_method_handler(self._watch),
        }

    def _tell(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _check(self, message: bytes, context: Context) -> bytes:
        service = await _service(message, context)
        serving = self.serving(service)
        if serving is Serving.SERVICE_UNKNOWN:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"no service {service[:_NAME_CHARACTERS]!r}")
        return _answer(serving)

    async def _watch(self, message: bytes, context: Context) -> None:
        service = await _service(message, context)
        reported = None
        while not self._ended:
            changed = self._changed
            serving = self.serving(service)
            if serving is not reported:
                reported = serving
                await context.write(_answer(serving))
            else:
                await changed.wait()
        await context.abort(grpc.StatusCode.UNAVAILABLE, "the picker is stopping")


async def _service(message: bytes, context: Context) -> str:
    if len(message) > HEALTH_MESSAGE_BYTES:
        await context.abort(
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            f"a message of {len(message)} bytes, the limit is {HEALTH_MESSAGE_BYTES}",
        )
    try:
        return str(StringValue.FromString(message).value)
    except DecodeError:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "not a HealthCheckRequest")
        raise


def _answer(serving: Serving) -> bytes:
    return bytes(UInt32Value(value=int(serving)).SerializeToString())
